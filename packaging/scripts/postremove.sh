#!/bin/sh
# After a removal. With dpkg --purge, what the service has kept goes, too.
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
if [ "$1" = purge ]; then
  rm -rf /var/lib/private/mcpbridge /var/lib/mcpbridge /var/cache/private/mcpbridge /var/cache/mcpbridge /var/log/private/mcpbridge /var/log/mcpbridge
fi
