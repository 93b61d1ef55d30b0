#!/bin/sh
# After the files have gone. Only dpkg knows a purge, which takes keys, queues and the user along; rpm leaves them.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
if [ "$1" = purge ]; then
	rm -rf /etc/anteroom /var/lib/anteroom
	if getent passwd anteroom >/dev/null; then
		userdel anteroom
	fi
fi
