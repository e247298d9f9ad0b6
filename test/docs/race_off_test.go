//go:build !race

package docs_test

// raceEnabled makes the controller under test watch for races if the tests do.
const raceEnabled = false
