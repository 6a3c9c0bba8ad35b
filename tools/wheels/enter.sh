#!/bin/sh
# enter.sh ROOT SOURCES WHEELS COMMAND...: runs COMMAND in the system below ROOT, with our sources at
# /lowtide and the wheels at /wheels. Run under `unshare --mount`, so that the mounts end with it.
set -eu
root=$1
for folder in dev proc sys; do mount --rbind "/$folder" "$root/$folder"; done
mount --bind "$2" "$root/lowtide"
mount --bind "$3" "$root/wheels"
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
if [ -d /etc/ssl/certs ]; then # what this machine trusts
  mkdir -p "$root/etc/ssl/certs"
  mount --bind /etc/ssl/certs "$root/etc/ssl/certs"
fi
shift 3
exec chroot "$root" "$@"
