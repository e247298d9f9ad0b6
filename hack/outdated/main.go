// Command outdated lists the direct requirements that are behind: folders of Go
// modules -> a table of requirements on standard output.
//
// The go command asks the module proxy, and one request that fails makes one row
// "unknown". Behind or not, the command succeeds.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// run writes the table for the modules in folders. The first one contains the Go
// version that newer requirements are compared with.
func run(ctx context.Context, folders []string, out io.Writer) error {
	if len(folders) == 0 {
		return errors.New("expected folders of Go modules, such as: outdated . hack/tools")
	}
	root, err := readModule(ctx, folders[0])
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MODULE\tREQUIREMENT\tCURRENT\tNEWEST\tNOTE")
	all, behind, unknown := 0, 0, 0
	for _, folder := range folders {
		rows, err := check(ctx, folder, root.Go)
		if err != nil {
			fmt.Fprintf(table, "%s\t\t\tunknown\t%s\n", folder, firstLine(err.Error()))
			unknown++
			continue
		}
		for _, r := range rows {
			all++
			switch r.newest {
			case "":
				unknown++
			case r.current:
				continue
			default:
				behind++
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", folder, r.path, r.current, cmp.Or(r.newest, "unknown"), r.note)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%d direct requirements: %d behind, %d unknown\n", all, behind, unknown)
	return err
}

// row is the state of one requirement.
type row struct {
	path, current string
	// newest is empty if it is unknown, and note contains the reason.
	newest, note string
}

// check returns a row for each direct requirement of the module in folder.
func check(ctx context.Context, folder, ownGo string) ([]row, error) {
	module, err := readModule(ctx, folder)
	if err != nil {
		return nil, err
	}
	required := module.direct()
	paths := make([]string, 0, len(required))
	for _, r := range required {
		paths = append(paths, r.Path)
	}
	listed, err := list(ctx, folder, append([]string{"-versions"}, paths...)...)
	if err != nil {
		return nil, err
	}
	rows := make([]row, 0, len(required))
	for _, r := range required {
		rows = append(rows, checkOne(ctx, folder, r, listed[r.Path], ownGo))
	}
	return rows, nil
}

// checkOne returns the row of a requirement. Listed is its answer with all versions.
func checkOne(ctx context.Context, folder string, r requirement, listed answer, ownGo string) row {
	result := row{path: r.Path, current: r.Version}
	versions, reason := listed.Versions, listed.reason()
	if isPseudo(r.Version) {
		// The proxy lists tags only.
		latest := listOne(ctx, folder, r.Path+"@latest")
		if latest.reason() == "" {
			versions, reason = append(versions, latest.Version), ""
		}
	}
	if reason == "" && len(versions) == 0 {
		reason = "the proxy lists no versions"
	}
	if reason != "" {
		result.note = reason
		return result
	}
	result.newest = newest(r.Version, versions)
	if result.newest == r.Version {
		return result
	}
	update := listOne(ctx, folder, r.Path+"@"+result.newest)
	if reason := update.reason(); reason != "" {
		result.note = "cannot be downloaded: " + reason
	} else {
		result.note = needs(ownGo, update.GoVersion)
	}
	return result
}

// answer is a part of what go list -m -json prints about a module.
type answer struct {
	Path      string
	Version   string
	Versions  []string
	GoVersion string
	Error     *struct{ Err string }
}

// reason returns why the module is unknown, or "".
func (a answer) reason() string {
	if a.Error == nil {
		return ""
	}
	reason := firstLine(a.Error.Err)
	if _, cause, isRead := strings.Cut(reason, "/@v/"); isRead {
		return cause // without the module and the address
	}
	return reason
}

func listOne(ctx context.Context, folder, query string) answer {
	answers, err := list(ctx, folder, query)
	if err != nil {
		return answer{Error: &struct{ Err string }{err.Error()}}
	}
	for _, a := range answers {
		return a
	}
	return answer{Error: &struct{ Err string }{"no answer"}}
}

// list returns the answers of the go command by the paths of the modules.
func list(ctx context.Context, folder string, args ...string) (map[string]answer, error) {
	text, err := golang(ctx, folder, append([]string{"list", "-m", "-e", "-mod=readonly", "-json"}, args...)...)
	if err != nil {
		return nil, err
	}
	answers := map[string]answer{}
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var a answer
		switch err := decoder.Decode(&a); { //nolint:musttag // the go command names its fields so
		case errors.Is(err, io.EOF):
			return answers, nil
		case err != nil:
			return nil, fmt.Errorf("reading the output of go list: %w", err)
		}
		answers[a.Path] = a
	}
}

// golang runs the go command in folder, and returns its output.
func golang(ctx context.Context, folder string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the arguments are ours
	command.Dir = folder
	output, err := command.Output()
	if failed, isExit := errors.AsType[*exec.ExitError](err); isExit {
		return nil, fmt.Errorf("go %s in %s: %s", args[0], folder, firstLine(string(failed.Stderr)))
	}
	return output, err
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
