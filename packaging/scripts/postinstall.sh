#!/bin/sh
# After an installation or an upgrade. The service is not started by itself: it would serve
# the example of its configuration.
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart mcpbridge.service || true
fi
