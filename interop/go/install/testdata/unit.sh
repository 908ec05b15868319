# Run by systemd.
dpkg -i /mnt/*_linux_"$(dpkg --print-architecture)".deb
cp /srv/config.yaml /etc/mcpbridge/config.yaml
cp /srv/server.mjs /server.mjs
(umask 077 && echo 'ADDER_KEY=the-secret-of-the-adder' >/etc/mcpbridge/environment)
ip link set lo up

systemctl start mcpbridge
test "$(systemctl show -P StatusText mcpbridge)" = 'serving 2 servers'
test "$(systemctl show -P ActiveState mcpbridge)" = active
for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  if mcpbridge healthcheck --ready; then break; fi
  sleep 0.2
done
mcpbridge healthcheck --ready

# A command runs, as the user of the service, and is refused what the unit forbids.
mcpbridge call http://127.0.0.1:2526/mcp/adder add a=40 b=2 | grep -qx 42
test "$(mcpbridge call http://127.0.0.1:2526/mcp/adder key)" = the-secret-of-the-adder
mcpbridge call http://127.0.0.1:2526/mcp/adder write path=/var/lib/mcpbridge/file | grep -qx written
for path in /etc/mcpbridge/file /usr/file /root/file /home/file; do
  mcpbridge call http://127.0.0.1:2526/mcp/adder write path=$path | grep -Eq 'EROFS|EACCES|ENOENT'
done
# The audit log is where logrotate finds it. What is moved away is begun anew.
sleep 1
log=/var/log/mcpbridge/audit.log
test "$(stat -Lc '%U %a' $log)" = 'mcpbridge 600'
test "$(stat -Lc %a /var/log/mcpbridge)" = 700
logrotate --force /etc/logrotate.d/mcpbridge
ls /var/log/mcpbridge/audit.log-*
mcpbridge call http://127.0.0.1:2526/mcp/adder add a=40 b=2 | grep -qx 42
sleep 1
test "$(grep -c '"name":"add"' $log)" = 1
pid=$(systemctl show -P MainPID mcpbridge)
test "$(stat -c %U "/proc/$pid")" = mcpbridge
grep -q 'CapEff:.*0000000000000000' "/proc/$pid/status"
grep -q 'NoNewPrivs:.*1' "/proc/$pid/status"

# A reload is over when systemd says so, and one that can't be used leaves all as it was.
sed -i '/notebook/d' /etc/mcpbridge/config.yaml
systemctl reload mcpbridge
status() {
  for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    if systemctl show -P StatusText mcpbridge | grep -q "$1"; then return 0; fi
    sleep 0.2
  done
  return 1
}
status 'serving 1 servers'
echo 'drain: 10' >>/etc/mcpbridge/config.yaml
systemctl reload mcpbridge
status "can't be used"
test "$(systemctl show -P ActiveState mcpbridge)" = active
test "$(systemctl show -P MainPID mcpbridge)" = "$pid"
mcpbridge call http://127.0.0.1:2526/mcp/adder add a=40 b=2 | grep -qx 42
cp /srv/config.yaml /etc/mcpbridge/config.yaml
systemctl reload mcpbridge
status 'serving 2 servers'

# A signal from systemd starts the drain, which ends the command, too.
systemctl stop mcpbridge
test "$(systemctl show -P Result mcpbridge)" = success
test -z "$(pgrep -f /server.mjs)"

# A process that does not go on is replaced. A mistake in the configuration stays one.
systemctl start mcpbridge
kill -KILL "$(systemctl show -P MainPID mcpbridge)"
sleep 2
test "$(systemctl show -P ActiveState mcpbridge)" = active
test "$(systemctl show -P NRestarts mcpbridge)" = 1
systemctl stop mcpbridge
echo 'drain: 10' >/etc/mcpbridge/config.yaml
if systemctl start mcpbridge; then false; fi
test "$(systemctl show -P ExecMainStatus mcpbridge)" = 2
test "$(systemctl show -P ActiveState mcpbridge)" = failed
