package environment

import (
	"fmt"
	"os"
)

// KeepLogs runs tests that write logs into a directory, which stays if anything fails.
func KeepLogs(suite string, run func(logs string) (code int, err error)) (code int, err error) {
	logs, err := os.MkdirTemp("", "operator-controller-"+suite+"-")
	if err != nil {
		return 1, fmt.Errorf("making a directory: %w", err)
	}
	code, err = run(logs)
	if err != nil || code != 0 {
		fmt.Fprintln(os.Stderr, "logs are kept in", logs)
		return code, err
	}
	return 0, os.RemoveAll(logs)
}
