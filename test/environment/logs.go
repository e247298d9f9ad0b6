package environment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
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

// AsWanted says which of the extensions the last pass has not found as wanted, going by the
// log of a controller that was started with --v=1, and why not one of them.
func AsWanted(logFile string, extensions []string) error {
	text, err := os.ReadFile(logFile)
	if err != nil {
		return fmt.Errorf("reading the controller's log: %w", err)
	}
	const asWanted = "as wanted"
	last := map[string]string{}
	for line := range bytes.Lines(text) {
		var entry struct {
			Message string `json:"msg"`
			Name    string `json:"name"`
			Reason  string `json:"reason"`
		}
		if json.Unmarshal(line, &entry) == nil && strings.HasSuffix(entry.Message, asWanted) {
			last[entry.Name] = strings.TrimSpace(entry.Message + " " + entry.Reason)
		}
	}
	others := slices.DeleteFunc(slices.Clone(extensions), func(name string) bool { return last[name] == asWanted })
	if len(others) > 0 {
		return fmt.Errorf("%d extensions are not as wanted, the first is %s: %s", len(others), others[0], last[others[0]])
	}
	return nil
}
