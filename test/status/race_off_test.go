//go:build !race

package status_test

const raceEnabled = false
