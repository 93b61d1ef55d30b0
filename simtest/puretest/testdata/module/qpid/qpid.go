// Package qpid imports upwards.
package qpid

import _ "github.com/anteroom/anteroom/eviction"
