//go:build !linux

package server

import "errors"

const strainEnv = "ANTEROOM_STRAIN"

func strainMain(string) error { return errors.ErrUnsupported }
