#!/bin/sh
# Before the files go: dpkg says "remove" or "upgrade", rpm how many versions will be left.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now anteroom.service
	fi
	;;
esac
