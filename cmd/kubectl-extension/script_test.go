package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/clusterextensions/operator-controller/internal/helmchart"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/signing"
)

// scriptTimeout is how long a script waits for what has to happen.
const scriptTimeout = 30 * time.Second

func TestMain(m *testing.M) {
	helmchart.Serve()
	testscript.Main(m, map[string]func(){"kubectl-extension": main})
}

// Each script is a session at a terminal, with commands beside those of
// testscript:
//
//	exits CODE COMMAND...  runs a command that has to exit with the code
//	push DIR TARGET        pushes a catalog to the registry, which is registry.test
//	pushbundle DIR TARGET  pushes a bundle there
//	pushsigned DIR TARGET FILE  pushes a bundle, signs it, and writes a Secret with the key to FILE
//	pushchart DIR TARGET   pushes a Helm chart there
//	fetch FILE PATH        gets PATH below the URL in FILE, waiting for both
//	until TEXT FILE PATH   likewise, and repeats it until TEXT is in the reply
//	waitlog TEXT FILE      waits until TEXT is in FILE
func TestScripts(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               startRegistry,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "push": push, "pushbundle": pushBundle, "pushsigned": pushSigned, "pushchart": pushChart, "fetch": runFetch, "until": until, "waitlog": waitlog,
		},
	})
}

type registryKey struct{}

// startRegistry makes a script have a registry, and pull only from there.
func startRegistry(env *testscript.Env) error {
	registry, err := testkit.StartRegistry()
	if err != nil {
		return err
	}
	env.Defer(func() { _ = registry.Close() })
	conf := filepath.Join(env.WorkDir, ".registries.conf")
	if err := registry.WriteRegistriesConf(conf, "registry.test"); err != nil {
		return err
	}
	policy := filepath.Join(env.WorkDir, ".policy.json")
	if err := os.WriteFile(policy, []byte(`{"default":[{"type":"insecureAcceptAnything"}]}`), 0o600); err != nil {
		return err
	}
	env.Setenv("CONTAINERS_REGISTRIES_CONF", conf)
	env.Setenv("POLICY", policy)
	env.Setenv("REGISTRY", registry.Host())
	complete, err := filepath.Abs("kubectl_complete-extension")
	if err != nil {
		return err
	}
	env.Setenv("COMPLETE", complete)
	env.Values[registryKey{}] = registry
	return nil
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code command...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var ended interface{ ExitCode() int }
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &ended) {
		got = ended.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func push(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: push dir target")
	}
	labels := map[string]string{image.CatalogLabel: "/" + args[0]}
	pushFiles(ts, os.DirFS(filepath.Dir(ts.MkAbs(args[0]))), args[1], labels)
}

func pushBundle(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: pushbundle dir target")
	}
	pushFiles(ts, os.DirFS(ts.MkAbs(args[0])), args[1], nil)
}

func pushSigned(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: pushsigned dir target file")
	}
	ctx := context.Background()
	signer, key, err := signing.NewKey()
	ts.Check(err)
	pushed, err := registryOf(ts).Push(ctx, args[1], os.DirFS(ts.MkAbs(args[0])), nil)
	ts.Check(err)
	signature, err := signer.Old(digest.Digest(pushed))
	ts.Check(err)
	repository, _, _ := strings.Cut(args[1], ":")
	ts.Check(signing.Attach(ctx, registryOf(ts), repository, pushed, signature))
	secret := fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: acme-key}\nstringData: {cosign.pub: %q}\n", key)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(secret), 0o600))
}

func pushChart(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: pushchart dir target")
	}
	_, err := registryOf(ts).PushChart(context.Background(), args[1], filepath.Base(args[0]), os.DirFS(ts.MkAbs(args[0])))
	ts.Check(err)
}

func registryOf(ts *testscript.TestScript) *testkit.Registry {
	registry, ok := ts.Value(registryKey{}).(*testkit.Registry)
	if !ok {
		ts.Fatalf("there is no registry")
	}
	return registry
}

func pushFiles(ts *testscript.TestScript, files fs.FS, target string, labels map[string]string) {
	_, err := registryOf(ts).Push(context.Background(), target, files, labels)
	ts.Check(err)
}

func runFetch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: fetch file path")
	}
	eventually(ts, args[0], args[1], "")
}

func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: until text file path")
	}
	eventually(ts, args[1], args[2], args[0])
}

func waitlog(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitlog text file")
	}
	deadline := time.Now().Add(scriptTimeout)
	for !strings.Contains(ts.ReadFile(args[1]), args[0]) {
		if time.Now().After(deadline) {
			ts.Fatalf("%q is not in %s", args[0], args[1])
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// eventually prints what is at path below the URL in file, once it has text.
func eventually(ts *testscript.TestScript, file, path, text string) {
	deadline := time.Now().Add(scriptTimeout)
	for {
		body, err := download(ts.MkAbs(file), path)
		if err == nil && strings.Contains(body, text) {
			_, err := ts.Stdout().Write([]byte(body))
			ts.Check(err)
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%v\n%s", err, body)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

var wholeLine = regexp.MustCompile(`^http://\S+\n$`)

func download(file, path string) (string, error) {
	url, err := os.ReadFile(file)
	if err != nil || !wholeLine.Match(url) {
		return "", fmt.Errorf("no URL in %q: %w", url, err)
	}
	reply, err := http.Get(strings.TrimSpace(string(url)) + path)
	if err != nil {
		return "", err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = errors.New(reply.Status)
	}
	return string(body), err
}
