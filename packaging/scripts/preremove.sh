#!/bin/sh
# Before a removal (remove for deb, 0 for rpm), but not before an upgrade.
set -e
case "$1" in
remove | 0)
  if [ -d /run/systemd/system ]; then
    systemctl disable --now mcpbridge.service || true
  fi
  ;;
esac
