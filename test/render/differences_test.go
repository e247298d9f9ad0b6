package render_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// What an entry says of the whole result, instead of one object.
const (
	// weRefuse: the bundle is refused here, for the reason of the rule. The
	// reference renders it, or refuses it for another reason.
	weRefuse = "refused"
	// weRender: the bundle is rendered here, to what the reference makes of it
	// when the namespace to watch is that of the installation.
	weRender = "rendered"
)

// difference is one thing in which a result is not that of the reference.
type difference struct {
	bundle, mode, what string
}

func (d difference) String() string { return fmt.Sprintf("| %s | %s | %s |", d.bundle, d.mode, d.what) }

// rule says why there are differences.
type rule struct {
	// message is in the error of what is refused for the rule.
	message string
	used    bool
}

// list is what differences.md says.
type list struct {
	rules   map[string]*rule
	entries map[difference]string // name of the rule
}

// readList reads the tables of a file: rules have three columns, entries four.
func readList(tb testing.TB, path string) list {
	tb.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	l := list{rules: map[string]*rule{}, entries: map[difference]string{}}
	for number, line := range strings.Split(string(content), "\n") {
		cells, isRow := tableRow(line)
		switch {
		case !isRow:
		case len(cells) == 3:
			if l.rules[cells[0]] != nil {
				tb.Errorf("%s:%d: rule %q twice", path, number+1, cells[0])
			}
			l.rules[cells[0]] = &rule{message: strings.Trim(cells[2], "`")}
		case len(cells) == 4:
			if err := l.addEntries(cells); err != nil {
				tb.Errorf("%s:%d: %v", path, number+1, err)
			}
		default:
			tb.Errorf("%s:%d: %d columns", path, number+1, len(cells))
		}
	}
	return l
}

// tableRow returns the cells of a row of a table that is no head.
func tableRow(line string) ([]string, bool) {
	if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| **") {
		return nil, false
	}
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells, true
}

func (l list) addEntries(cells []string) error {
	known := l.rules[cells[3]]
	if known == nil {
		return fmt.Errorf("no rule %q", cells[3])
	}
	known.used = true
	for mode := range strings.FieldsSeq(cells[1]) {
		if !slices.Contains(modes(), mode) {
			return fmt.Errorf("no mode %q", mode)
		}
		entry := difference{bundle: cells[0], mode: mode, what: strings.Trim(cells[2], "`")}
		if _, twice := l.entries[entry]; twice {
			return fmt.Errorf("twice: %s", entry)
		}
		l.entries[entry] = cells[3]
	}
	return nil
}

// of returns the entries for a bundle in a mode.
func (l list) of(bundle, mode string) []difference {
	var found []difference
	for entry := range l.entries {
		if entry.bundle == bundle && entry.mode == mode {
			found = append(found, entry)
		}
	}
	return found
}
