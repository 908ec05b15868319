package=$(ls /mnt/*_linux_"$(dpkg --print-architecture)".rpm)
test "$(rpm -qp --qf '%{license} %{vendor}' "$package")" = 'Apache-2.0 mcpbridge'
rpm -i --nodeps "$package" # this machine's packages are not in rpm's database
mcpbridge version
systemd-analyze verify mcpbridge.service
rpm -qc mcpbridge | grep -qx /etc/mcpbridge/config.yaml
rpm -qc mcpbridge | grep -qx /etc/logrotate.d/mcpbridge
rpm -e mcpbridge
for left in /usr/bin/mcpbridge /etc/mcpbridge /usr/lib/systemd/system/mcpbridge.service /etc/logrotate.d/mcpbridge; do
  test ! -e "$left"
done
