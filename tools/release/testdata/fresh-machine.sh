#!/bin/bash
# fresh-machine.sh MACHINE SCRIPT FILE… runs SCRIPT with the FILEs as root of a copy of the machine
# in the directory MACHINE, or of this one, /, that is thrown away, with the network to itself. It
# takes root, and "unshare --mount --net --pid --fork" around it.
set -euo pipefail
machine=$1 script=$2
shift 2
disk=$(mktemp -d)
mount -t tmpfs tmpfs "$disk"
mkdir "$disk/changes" "$disk/work" "$disk/root"
mount -t overlay overlay -o "lowerdir=$machine,upperdir=$disk/changes,workdir=$disk/work" "$disk/root"
mount -t proc proc "$disk/root/proc"
mount --rbind /dev "$disk/root/dev"
mount -t tmpfs tmpfs "$disk/root/tmp"
install -d "$disk/root/given"
cp "$script" "$disk/root/given/script.sh"
cp "$@" "$disk/root/given/"
PATH=$PATH:/usr/sbin ip link set lo up
cd /
exec chroot "$disk/root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 /bin/bash /given/script.sh
