package config

import (
	"slices"
	"time"
)

// Revoke is the command of an origin that ends its visitor's session, and the
// only one.
const Revoke = "revoke"

// awsPatience is how long programs that were written for AWS' waiting room may
// say nothing of the place they hold: they ask for a number that is everybody's.
const awsPatience = time.Hour

// checkCommands checks what others than visitors may say about a room.
func (f *File) checkCommands(key string, r Room) {
	for i, c := range r.OriginCommands {
		if c != Revoke {
			f.fault(key+".enabled_origin_commands"+index(i), "%q; give %s, the only one there is, or an empty list for none", c, Revoke)
		}
	}
	if r.AWSAPI && r.TicketTTL.value() < awsPatience && !f.blamed(key+".ticket_ttl") {
		f.warn(key+".ticket_ttl", "%v: programs that were written for AWS' waiting room say nothing for longer, and lose their place; give %v or more with aws_api", r.TicketTTL, awsPatience)
	}
}

// Commands reports whether the origin may say so.
func (r Room) Commands(command string) bool { return slices.Contains(r.OriginCommands, command) }
