dpkg -i /mnt/*_linux_"$(dpkg --print-architecture)".deb
mcpbridge version
mcpbridge check /etc/mcpbridge/config.yaml
systemd-analyze verify mcpbridge.service
systemd-analyze security --offline=true --threshold=25 mcpbridge.service >/dev/null
test -e /usr/share/doc/mcpbridge/config.schema.json # which the configuration names
man -w mcpbridge mcpbridge-serve mcpbridge-healthcheck
bash -c 'source /usr/share/bash-completion/completions/mcpbridge && complete -p mcpbridge'
grep -qx LogsDirectory=mcpbridge /usr/lib/systemd/system/mcpbridge.service
test "$(stat -c '%U %a' /etc/logrotate.d/mcpbridge)" = 'root 644' # others it would leave out
# What was changed survives an upgrade.
echo '# mine' >>/etc/mcpbridge/config.yaml
dpkg -i --force-confold /mnt/*_linux_"$(dpkg --print-architecture)".deb
tail -1 /etc/mcpbridge/config.yaml | grep -q mine
dpkg -P mcpbridge
for left in /usr/bin/mcpbridge /etc/mcpbridge /usr/lib/systemd/system/mcpbridge.service /usr/share/man/man1/mcpbridge.1.gz /etc/logrotate.d/mcpbridge; do
  test ! -e "$left"
done
