#!/bin/sh
# After the files are there: dpkg says "configure" and the old version, if there was one; rpm how many versions there are now.
set -e

if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers anteroom.conf
elif ! getent passwd anteroom >/dev/null; then
	useradd --system --home-dir /var/lib/anteroom --no-create-home --shell /usr/sbin/nologin anteroom
fi
chgrp anteroom /etc/anteroom /etc/anteroom/anteroom.yaml

# A first installation starts nothing: the file says first which site it is for.
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if systemctl is-active --quiet anteroom.service; then
		systemctl restart anteroom.service # it gives its people to the other nodes first
	fi
fi
