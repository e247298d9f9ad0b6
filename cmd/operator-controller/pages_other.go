//go:build !linux

package main

import "errors"

// pageOut is known to Linux alone.
func pageOut() error { return errors.ErrUnsupported }
