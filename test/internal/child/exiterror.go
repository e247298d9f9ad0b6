package child

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

// Bounds on what an ExitError quotes: enough for the reason that Go programs
// give last, short enough to read in the output of a test.
const (
	tailBytes = 8 << 10
	tailLines = 15
)

// ExitError says that a process ended although nobody stopped it.
type ExitError struct {
	// Name is the name of the command, Log the file with its output.
	Name, Log string
	// Tail is the end of that output, line by line.
	Tail []string
	// Reason is how it ended, such as "exit status 1".
	Reason string
}

// Error quotes the end of the log, a line each: the cause is there and nowhere
// else.
func (e *ExitError) Error() string {
	message := fmt.Sprintf("%s ended: %s; end of %s:", e.Name, e.Reason, e.Log)
	return strings.Join(append([]string{message}, e.Tail...), "\n\t")
}

// tail reads the last lines of a file. A file that cannot be read has none: the
// error that quotes it names the file.
func tail(path string) []string {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.Size() > tailBytes {
		if _, err := file.Seek(-tailBytes, io.SeekEnd); err != nil {
			return nil
		}
	}
	content, err := io.ReadAll(io.LimitReader(file, tailBytes))
	if err != nil {
		return nil
	}
	content = bytes.TrimSpace(content)
	if len(content) == 0 {
		return nil
	}
	lines := strings.Split(string(content), "\n")
	return lines[max(0, len(lines)-tailLines):]
}
