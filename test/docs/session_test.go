package docs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

const (
	// patience is how long what is shown may take to come.
	patience = time.Minute
	// commandTimeout is how long one command may take.
	commandTimeout = 3 * time.Minute
)

// session is a terminal: a folder with what a checkout has, and a shell that keeps
// variables from one command to the next.
type session struct {
	dir    string
	hidden string // a folder for what is not on the page
	state  string // a script that restores the variables
	output string // the file of the last command
	groups []int  // of processes
}

// openSession makes a folder with a link to each entry of the checkout, and the
// programs of the page first in PATH.
func openSession(t *testing.T) *session {
	t.Helper()
	s := &session{dir: t.TempDir(), hidden: t.TempDir()}
	s.state = filepath.Join(s.hidden, "state")
	programs := filepath.Join(s.hidden, "bin")
	must(t, os.Mkdir(programs, 0o700))
	must(t, os.Symlink(theSuite.Cluster.Binaries().Kubectl, filepath.Join(programs, "kubectl")))
	for _, program := range []string{"operator-controller", "kubectl-extension"} {
		must(t, os.Symlink(filepath.Join(theSuite.Programs(), program), filepath.Join(programs, program)))
	}
	entries, err := os.ReadDir(theSuite.Root())
	must(t, err)
	for _, entry := range entries {
		if entry.Name() != "bin" {
			must(t, os.Symlink(filepath.Join(theSuite.Root(), entry.Name()), filepath.Join(s.dir, entry.Name())))
		}
	}
	must(t, os.Symlink(programs, filepath.Join(s.dir, "bin")))
	var state strings.Builder
	for name, value := range map[string]string{
		"PATH":                       programs + ":" + os.Getenv("PATH"),
		"KUBECONFIG":                 theSuite.Cluster.Kubeconfig(),
		"CONTAINERS_REGISTRIES_CONF": theSuite.RegistriesConf(),
		"TMPDIR":                     s.hidden,
		"REGISTRY":                   theSuite.Registry.Host(),
		"PORT":                       freePort(t),
		"OTHER_PORT":                 freePort(t),
	} {
		fmt.Fprintf(&state, "export %s=%q\n", name, value)
	}
	must(t, os.WriteFile(s.state, []byte(state.String()), 0o600))
	t.Cleanup(s.end)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	address, err := freeAddress()
	must(t, err)
	return strings.TrimPrefix(address, "127.0.0.1:")
}

// end ends what commands have left running.
func (s *session) end() {
	for _, group := range s.groups {
		_ = syscall.Kill(-group, syscall.SIGKILL) // most of them are gone
	}
	s.groups = nil
}

// write makes a file of the folder, and none in what it links to: that is the
// checkout.
func (s *session) write(name string, data []byte) error {
	path := filepath.Join(s.dir, name)
	if first, _, _ := strings.Cut(name, "/"); isLink(filepath.Join(s.dir, first)) {
		return fmt.Errorf("%s is in the checkout", name)
	}
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600))
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// prepare does what the archive of a page says: its files are there when the page
// begins, bundles/REPOSITORY/TAG and catalogs/REPOSITORY/TAG are images, and the
// script at its beginning has been carried out.
func (s *session) prepare(t *testing.T, file string) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	must(t, err)
	for _, file := range archive.Files {
		must(t, s.write(file.Name, file.Data))
	}
	s.push(t, "bundles", theSuite.PushBundle)
	s.push(t, "catalogs", theSuite.PushCatalog)
	if output, err := s.run(t.Context(), "set -e\n"+string(archive.Comment)); err != nil {
		t.Fatalf("%s: %v\n%s", file, err, output)
	}
}

func (s *session) push(t *testing.T, folder string, push func(context.Context, string, fs.FS) error) {
	t.Helper()
	images, err := filepath.Glob(filepath.Join(s.dir, folder, "*", "*"))
	must(t, err)
	for _, image := range images {
		target := filepath.Base(filepath.Dir(image)) + ":" + filepath.Base(image)
		must(t, push(t.Context(), target, os.DirFS(image)))
	}
}

// shell carries out its first argument with the variables that the command before
// has left, and keeps them for the next.
const shell = `. "$STATE"; set -o pipefail; eval "$1"; code=$?; export -p > "$STATE"; exit $code`

// start starts a command. Both of its outputs go into a file of its own: what is left
// running writes on.
func (s *session) start(ctx context.Context, text string) (*exec.Cmd, error) {
	output, err := os.CreateTemp(s.hidden, "output-")
	if err != nil {
		return nil, err
	}
	s.output = output.Name()
	defer func() { _ = output.Close() }() // the process has its own handle
	command := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-c", shell, "bash", text)
	command.Dir = s.dir
	command.Env = append(os.Environ(), "STATE="+s.state)
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return nil, err
	}
	s.groups = append(s.groups, command.Process.Pid)
	return command, nil
}

// run carries out a command and gives all that it prints.
func (s *session) run(ctx context.Context, text string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	command, err := s.start(ctx, text)
	if err != nil {
		return "", err
	}
	failure := command.Wait()
	return s.printed(), failure
}

func (s *session) printed() string {
	data, err := os.ReadFile(s.output)
	if err != nil {
		return err.Error()
	}
	return string(bytes.ToValidUTF8(data, []byte("?")))
}

// onlyReads tells commands that can be repeated until they show what is awaited.
func onlyReads(text string) bool {
	if strings.Contains(text, "--dry-run=server") {
		return true
	}
	words := strings.Fields(text)
	switch words[0] {
	case "kubectl":
		if len(words) > 1 && words[1] == "extension" {
			return !strings.Contains(text, "|")
		}
		return len(words) > 1 && slices.Contains([]string{"get", "describe", "events", "wait", "auth"}, words[1])
	case "curl":
		return true
	}
	return false
}
