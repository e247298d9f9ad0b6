package helmchart_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/helmchart"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// TestHostileCharts has templates that want more than there is. All of them are told what
// they have too much of, and the process that tells them has it not.
func TestHostileCharts(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	tests := map[string]struct {
		template string
		want     string
	}{
		"one call that takes all memory": {
			template: `{{ repeat 2147483647 "x" }}`,
			want:     "takes more than 268435456 bytes of memory",
		},
		"a list that takes all memory": {
			template: `{{ range until 2147483647 }}{{ end }}`,
			want:     "bytes of memory",
		},
		"a text that doubles": {
			template: `{{ $x := "xxxxxxxxxxxxxxxx" }}{{ range until 40 }}{{ $x = print $x $x }}{{ end }}{{ len $x }}`,
			want:     "bytes of memory",
		},
		"a gigabyte of output": {
			template: `{{ range until 1024 }}{{ repeat 1048576 "x" }}{{ end }}`,
			want:     "bytes of memory",
		},
		"aliases that multiply": {
			template: "a: &a [x,x,x,x,x,x,x,x,x]\n" + aliases("abcdefghi"),
			want:     "chart/templates/app.yaml: ",
		},
		"templates that call each other": {
			template: `{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`,
			want:     "exceeded maximum template depth",
		},
		"include of itself": {
			template: `{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`,
			want:     "nested reference name: a",
		},
		"tpl of itself": {
			template: `{{ $t := dict }}{{ $_ := set $t "t" "{{ tpl .t . }}" }}{{ tpl $t.t $t }}`,
			want:     "chart/templates: rendering ",
		},
		"10,000 objects": {
			template: "{{ range $i := until 10000 }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c{{ $i }}}\n{{ end }}",
			want:     "more than 4096 documents",
		},
		"a name that is a path": {
			template: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ../../etc/passwd}\n",
			want:     `invalid name "../../etc/passwd" of ConfigMap`,
		},
		"a message without an end": {
			template: `{{ fail (repeat 1000000 "x") }}`,
			want:     "xxxx… xxxx",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := web(map[string]string{"templates/app.yaml": test.template}).objects(t, helmchart.New())
			isJudged := errors.As(err, new(*bundle.InvalidError)) || errors.As(err, new(*bundle.ConfigError))
			if err == nil || !isJudged || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 2048 {
				t.Errorf("error = %.300v, want one of the content with %q", err, test.want)
			}
		})
	}
}

// TestSingleAllocationIsBounded renders a template that allocates too much in one call, and then ends.
func TestSingleAllocationIsBounded(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	for _, megabytes := range []int{300, 1000} {
		template := fmt.Sprintf("a: {{ repeat %d000000 \"x\" | len }}\n", megabytes)
		for range 4 { // a later allocation may fail instead, in some of the renderings
			_, err := web(map[string]string{"templates/app.yaml": template}).objects(t, helmchart.New())
			if !errors.As(err, new(*bundle.InvalidError)) || !strings.Contains(err.Error(), "takes more than 268435456 bytes of memory") {
				t.Fatalf("%d MB: error = %v, want one about the memory", megabytes, err)
			}
		}
	}
}

// aliases are lines that each have the one before nine times.
func aliases(names string) string {
	var text strings.Builder
	for i := range len(names) - 1 {
		before, name := names[i:i+1], names[i+1:i+2]
		text.WriteString(name + ": &" + name + " [" + strings.TrimSuffix(strings.Repeat("*"+before+",", 9), ",") + "]\n")
	}
	return text.String()
}

// TestOutputIsBounded has an answer that is too long for who waits for it, and not for the
// memory of the process.
func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	engine := helmchart.New()
	engine.Limits.Output = 64 << 10
	_, err := web(map[string]string{
		"templates/app.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {a: {{ repeat 100000 \"x\" }}}\n",
	}).objects(t, engine)
	if !errors.As(err, new(*bundle.InvalidError)) || !strings.Contains(err.Error(), "comes to more than 65536 bytes") {
		t.Errorf("error = %v, want one about the output", err)
	}
}

// endless writes nothing and calls nothing, so that nothing inside of its process can stop
// it.
const endless = `{{ range 1000000000000 }}{{ end }}`

// TestTimeIsBounded has a template that never ends. The time on a processor is what it is
// judged by; one that did not get it is another matter.
func TestTimeIsBounded(t *testing.T) {
	t.Parallel()
	t.Run("on a processor", func(t *testing.T) {
		t.Parallel()
		engine := helmchart.New()
		engine.Limits.Processor = time.Second
		_, err := web(map[string]string{"templates/app.yaml": endless}).objects(t, engine)
		if !errors.As(err, new(*bundle.InvalidError)) || !strings.Contains(err.Error(), "takes more than 1s on a processor") {
			t.Errorf("error = %v, want one about the processor", err)
		}
	})
	t.Run("all in all", func(t *testing.T) {
		t.Parallel()
		engine := helmchart.New()
		engine.Limits.Wait = 100 * time.Millisecond
		_, err := web(map[string]string{"templates/app.yaml": endless}).objects(t, engine)
		if err == nil || errors.As(err, new(*bundle.InvalidError)) || !strings.Contains(err.Error(), "given up after 100ms") {
			t.Errorf("error = %v, want one that is worth another try", err)
		}
	})
	t.Run("by who waits", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := helmchart.New().For(ctx)(endlessChart())
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error = %v, want that of the context", err)
		}
	})
}

// TestOneAtATime has a chart wait for another one, for as long as somebody waits for it.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	engine := helmchart.New()
	ctx, end := context.WithCancel(t.Context())
	first := make(chan error)
	go func() {
		_, err := engine.For(ctx)(endlessChart())
		first <- err
	}()
	testkit.Eventually(t, 20*time.Second, "another chart waits", func(context.Context) error {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := engine.For(ctx)(bundle.ChartInput{}); !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("error = %w, want that of the context", err)
		}
		return nil
	})
	end()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first: error = %v, want that of its context", err)
	}
	if _, err := web(nil).objects(t, engine); err != nil {
		t.Errorf("after it: %v", err)
	}
}

func endlessChart() bundle.ChartInput {
	return bundle.ChartInput{Files: map[string][]byte{
		"Chart.yaml": []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n"), "templates/app.yaml": []byte(endless),
	}}
}

// TestFilesAreBounded has a folder with more files than a chart can have.
func TestFilesAreBounded(t *testing.T) {
	t.Parallel()
	chart := web(nil)
	for i := range bundle.MaxChartFiles {
		chart.files["chart/files/"+string(rune('a'+i%26))+strings.Repeat("x", i/26)] = &fstest.MapFile{}
	}
	if _, err := bundle.Parse(chart.files); err == nil || !strings.Contains(err.Error(), "chart: more than 5000 files") {
		t.Errorf("error = %v, want one about the files", err)
	}
}

// TestAPIsAreBounded has a cluster that serves more than templates can be told of.
func TestAPIsAreBounded(t *testing.T) {
	t.Parallel()
	in := bundle.ChartInput{
		Files: map[string][]byte{
			"Chart.yaml":       []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n"),
			"templates/a.yaml": []byte("a: {{ .Capabilities.APIVersions | len }}\n"),
		},
		Release: bundle.ChartRelease{Name: "web", APIs: make([]string, 50_000)},
	}
	for i := range in.Release.APIs {
		in.Release.APIs[i] = fmt.Sprintf("%0200d.example/v1/Kind", i)
	}
	if out, err := helmchart.New().For(t.Context())(in); err != nil || len(out.Documents) != 1 {
		t.Errorf("%d documents, error %v", len(out.Documents), err)
	}
	in.Release.APIs = append(in.Release.APIs, "v1")
	_, err := helmchart.New().For(t.Context())(in)
	if err == nil || errors.As(err, new(*bundle.InvalidError)) || !strings.Contains(err.Error(), "the cluster serves 50001 APIs, and templates can be told of 50000") {
		t.Errorf("error = %v, want one about the APIs that judges no chart", err)
	}
}

// TestKubeVersionIsBounded has a range with more alternatives than anybody reads.
func TestKubeVersionIsBounded(t *testing.T) {
	t.Parallel()
	const alternative = ">=1.0.0-0 || "
	for _, length := range []int{256, 257} {
		version := strings.TrimSuffix(strings.Repeat(alternative, 30), " || ")[:length-len(">=1.0.0-0")-4]
		version = version[:strings.LastIndex(version, " ||")] + " || >=1.0.0-0"
		version += strings.Repeat(" ", length-len(version))
		chart := web(map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\nkubeVersion: '" + version + "'\n"})
		_, err := bundle.Parse(chart.files)
		if isRefused := err != nil && strings.Contains(err.Error(), "kubeVersion: more than 256 bytes"); isRefused != (length > 256) || !isRefused && err != nil {
			t.Errorf("%d bytes: error = %v", length, err)
		}
	}
}

// TestBombOfCharts has an archive in charts/ that is much larger than it looks.
func TestBombOfCharts(t *testing.T) {
	t.Parallel()
	archive, err := testkit.Tar(
		testkit.File("db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 1.0.0\n"),
		testkit.File("db/zeros", strings.Repeat("\x00", 6<<20)),
	)
	if err != nil {
		t.Fatal(err)
	}
	_, err = web(map[string]string{"charts/db-1.0.0.tgz": string(testkit.Gzip(archive))}).objects(t, helmchart.New())
	if !errors.As(err, new(*bundle.InvalidError)) || !strings.Contains(err.Error(), "larger than the maximum file size") {
		t.Errorf("error = %v, want one about the file", err)
	}
}

// TestNothingLeaksIntoCharts has a template ask for what the process around it knows.
func TestNothingLeaksIntoCharts(t *testing.T) {
	t.Setenv("SECRET_OF_THE_CONTROLLER", "open")
	for _, function := range []string{`env "SECRET_OF_THE_CONTROLLER"`, `expandenv "$SECRET_OF_THE_CONTROLLER"`} {
		_, err := web(map[string]string{"templates/app.yaml": "a: {{ " + function + " }}"}).objects(t, helmchart.New())
		if err == nil || strings.Contains(err.Error(), "open") || !strings.Contains(err.Error(), "not defined") {
			t.Errorf("%s: error = %v, want that there is no such function", function, err)
		}
	}
}
