package rules

import (
	_ "context"     // want import
	_ "crypto/rand" // want import
	_ "errors"
	_ "log"       // want import
	_ "log/slog"  // want import
	_ "math/rand" // want import
	_ "math/rand/v2"
	_ "net/netip"   // want import
	_ "os"          // want import
	_ "runtime"     // want import
	_ "sync"        // want import
	_ "sync/atomic" // want import
	_ "time"
	_ "unsafe" // want import
)
