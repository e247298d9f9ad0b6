package console

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/operator"
)

// patience is how long a test waits for what takes seconds on an idle machine.
const patience = 2 * time.Minute

// startTimeout bounds a start on a busy machine, without the builds before it.
const startTimeout = 30 * time.Minute

var (
	inBrowser = flag.Bool("browser", false, "show the pages in a browser")
	pictures  = flag.String("pictures", "", "directory for pictures of the pages; none by default")
)

// browsers are what Chromium is called.
var browsers = []string{"chromium", "chromium-browser", "google-chrome"}

// suite is what all tests share. They follow each other: one installs what the next ones
// show.
type suite struct {
	*environment.Environment

	browser string // its path
	axe     string // a script; empty for none
}

var theSuite suite

func TestMain(m *testing.M) {
	flag.Parse()
	if theSuite.browser = findBrowser(); !*inBrowser || theSuite.browser == "" {
		os.Exit(m.Run())
	}
	code, err := environment.KeepLogs("console", func(logs string) (int, error) { return theSuite.run(m, logs) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func findBrowser() string {
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

func needBrowser(t testing.TB) {
	t.Helper()
	switch {
	case !*inBrowser:
		t.Skip("takes a browser: make test-long SUITE=console runs it")
	case theSuite.browser == "":
		t.Skip("test/console: skipped: needs Chromium (apt-get install chromium)")
	}
}

func (s *suite) run(m *testing.M, logs string) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	s.Environment, err = environment.Start(context.Background(), environment.Options{Registries: []string{operator.Registry}, Progress: os.Stderr})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if s.axe, err = readAxe(); err != nil {
		return 1, err
	}
	if s.axe == "" {
		fmt.Fprintf(os.Stderr, "test/console: skipped: rules of accessibility need a file with axe-core in %s\n", axeVariable)
	}
	if err := s.publish(ctx); err != nil {
		return 1, err
	}
	controller, err := s.StartController(ctx, filepath.Join(logs, "controller.log"))
	if err != nil {
		return 1, err
	}
	if err := s.Kubectl(ctx, "wait", "--for=condition=Serving", "clustercatalog", "--all", "--timeout=3m"); err != nil {
		return 1, errors.Join(err, controller.Stop())
	}
	code = m.Run()
	return code, controller.Stop()
}

// publish offers the sample operator, what wants to do harm, and what is published, where
// that is here.
func (s *suite) publish(ctx context.Context) error {
	for _, version := range []string{"1.0.0", "1.1.0"} {
		bundle, err := operator.Bundle(version)
		if err != nil {
			return err
		}
		if err := s.PushBundle(ctx, operator.Package+":v"+version, bundle); err != nil {
			return err
		}
	}
	hostile, err := hostileCatalog()
	if err != nil {
		return err
	}
	err = errors.Join(
		s.PushCatalog(ctx, "sample:latest", operator.Catalog),
		s.PushCatalog(ctx, "hostile:latest", fstest.MapFS{"catalog.json": &fstest.MapFile{Data: hostile}}),
		s.CreateCatalog(ctx, "sample", operator.Registry+"/sample:latest"),
		s.CreateCatalog(ctx, "hostile", operator.Registry+"/hostile:latest"),
	)
	if published := publishedCatalog(); err == nil && published != "" {
		err = errors.Join(
			s.PushCatalog(ctx, "community:latest", os.DirFS(published)),
			s.CreateCatalog(ctx, "community", operator.Registry+"/community:latest"),
		)
	}
	return err
}

// publishedCatalog is a folder with published packages; empty if there is none here.
func publishedCatalog() string {
	root, err := testkit.ModuleRoot()
	if err != nil {
		return ""
	}
	folder := os.Getenv("CORPUS_DIR")
	if folder == "" {
		folder = filepath.Join(root, "..", "shared", "corpus")
	}
	folder = filepath.Join(folder, "catalog")
	if _, err := os.Stat(folder); err != nil {
		return ""
	}
	return folder
}

// startConsole starts the command as somebody, until the test ends, and gives the URL that it
// prints.
func startConsole(t testing.TB, kubeconfig string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	command := exec.CommandContext(ctx, filepath.Join(theSuite.Programs(), "kubectl-extension"), "console", "--no-browser", "--kubeconfig", kubeconfig)
	command.Env = append(os.Environ(), "CONTAINERS_REGISTRIES_CONF="+theSuite.RegistriesConf())
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	var said strings.Builder
	command.Stderr = &said
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	url, err := bufio.NewReader(output).ReadString('\n')
	t.Cleanup(func() {
		cancel()
		if err := command.Wait(); err != nil && said.Len() > 0 {
			t.Errorf("the console ended with %v\n%s", err, said.String())
		}
	})
	if err != nil {
		cancel()
		t.Fatalf("no URL: %v", err)
	}
	return strings.TrimSpace(url)
}
