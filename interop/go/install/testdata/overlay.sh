# Makes a root that is a copy of this machine's files, in memory: what is changed there is
# gone at the end. overlay.sh FOLDER DIST SCRIPT [FILES]: SCRIPT is run in that root, where
# DIST is /mnt and FILES is /srv.
set -eu
at=$1
mount --make-rprivate /
mount -t tmpfs tmpfs "$at"
mkdir "$at/upper" "$at/work" "$at/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$at/upper,workdir=$at/work" "$at/root"
cp "$3" "$at/root/try.sh"
mount --bind "$2" "$at/root/mnt"
if [ -n "${4-}" ]; then mount --bind "$4" "$at/root/srv"; fi
cd "$at/root"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs tmpfs dev
for device in null zero full random urandom tty; do
  touch "dev/$device"
  mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm
ln -s /proc/self/fd dev/fd
ln -s pts/ptmx dev/ptmx
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mkdir old
pivot_root . old
if [ -z "${4-}" ]; then
  exec chroot . sh -euc 'umount -l /old; exec sh -eux /try.sh'
fi
# With FILES, the script is run by a systemd of its own, as a service.
mount -t cgroup2 cgroup2 sys/fs/cgroup
: >etc/machine-id
cat >etc/systemd/system/try.service <<'UNIT'
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
ExecStart=/bin/sh -eux /try.sh
StandardOutput=append:/srv/log
StandardError=append:/srv/log
ExecStopPost=/bin/sh -c 'echo "$EXIT_STATUS" >/srv/status'
ExecStopPost=/bin/systemctl --force --force poweroff
TimeoutStartSec=120
UNIT
cat >etc/systemd/system/try.target <<'UNIT'
[Unit]
Requires=sysinit.target
Wants=try.service
AllowIsolate=yes
UNIT
export container=unshare
exec chroot . sh -euc 'umount -l /old; exec /lib/systemd/systemd --unit=try.target --log-target=null </dev/null'
