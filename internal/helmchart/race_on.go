//go:build race

package helmchart

import "strings"

// memoryPerByte is how much memory a byte takes in a program that watches for races: it keeps
// several bytes about each.
const memoryPerByte = 8

// lacksMemory reports whether what watches for races, which has memory of its own, got no more, or
// whether the runtime found no addresses that can be watched.
func lacksMemory(complaint string) bool {
	return strings.Contains(complaint, "ThreadSanitizer failed to allocate") || strings.Contains(complaint, "too many address space collisions")
}
