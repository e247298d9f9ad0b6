package charts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// chartFile returns a Chart.yaml.
func chartFile(name, version string) string {
	return fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n", name, version)
}

func configMap(name, data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata:\n" + data
}

// madeCharts returns charts whose bytes matter, which editors of text would change.
func madeCharts(t *testing.T) map[string]files {
	t.Helper()
	made := map[string]files{
		"scalars":             scalars(""),
		"scalars-with-spaces": scalars("  \n\n"),
		"archives":            archives(t),
		"json":                jsonFiles(),
		"tabs":                tabs(),
		"odd-names":           oddNames(),
	}
	for _, name := range []string{"values", "documents", "definitions", "files", "schemas", "hooks"} {
		text, err := os.ReadFile(filepath.Join("testdata", name+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		chart, _ := chartIn(t, text)
		made[name+"-with-windows-lines"] = edited(chart, func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") })
		made[name+"-with-byte-order-marks"] = edited(chart, func(text string) string { return "\ufeff" + text })
		made[name+"-without-last-lines"] = edited(chart, func(text string) string { return strings.TrimRight(text, "\n") })
	}
	for _, version := range []string{
		"1.0", `"1.0"`, "1", "1.10", "1e2", "0x10", "true", "v2", "1.16-SNAPSHOT", "v1.2.3-rc.1+build.5", "0.0.0", `"1.2.3+4"`, "01.2.3", "1.2.3.4", "latest", "1..2", "20260101.1", "", "[1.0.0]",
	} {
		made["version-"+version] = files{
			"Chart.yaml":         chartFile("versions", version) + "appVersion: 1.10\n",
			"templates/all.yaml": configMap("all", "  version: {{ .Chart.Version | quote }}\n  app: {{ .Chart.AppVersion | quote }}\n"),
		}
	}
	return made
}

// edited returns a chart with all its files changed.
func edited(chart files, change func(string) string) files {
	made := files{}
	for name, text := range chart {
		made[name] = change(text)
	}
	return made
}

// scalars returns a chart with block scalars of every chomping in every place, each followed by spaces.
func scalars(after string) files {
	chart := files{"Chart.yaml": chartFile("scalars", "1.0.0")}
	for i, style := range []string{"|", "|-", "|+", ">", ">-", ">+", "|2", ">2-", "|+2"} {
		for j, lines := range []string{"a", "a\n\nb", "a\n\n", "a\n   b\n c", "a # no comment\n", "a\n--- b", ""} {
			name := fmt.Sprintf("s-%d-%d", i, j)
			scalar := style + "\n" + indented(lines, 4) + "\n"
			document := func(in string) string { return configMap(name+in, "  last: "+scalar) + after }
			chart["templates/last-of-file-"+name+".yaml"] = document("-file")
			chart["templates/last-of-document-"+name+".yaml"] = document("-document") + "---\n" + document("-next") + "--- # end\n"
			chart["templates/middle-"+name+".yaml"] = configMap(name+"-middle", "  first: "+scalar+"  last: b\n")
			chart["templates/hook-"+name+".yaml"] = strings.Replace(document("-hook"), "-hook}", "-hook, annotations: {helm.sh/hook: test}}", 1) + "---\n" + document("-after")
			chart["templates/list-"+name+".yaml"] = "apiVersion: v1\nkind: List\nitems:\n- " + strings.TrimSpace(indented(document("-list"), 2)) + "\n"
			chart["crds/"+name+".yaml"] = document("-crds") + "---\n" + document("-last")
			chart["crds/list-"+name+".yaml"] = "apiVersion: v1\nkind: List\nitems:\n- " + strings.TrimPrefix(indented(document("-listed"), 2), "  ")
		}
	}
	return chart
}

// indented returns a text with all lines moved to the right, except for empty ones.
func indented(text string, spaces int) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = strings.Repeat(" ", spaces) + line
		}
	}
	return strings.Join(lines, "\n")
}

// archives returns a chart with a chart in an archive, which has a chart in an archive too.
func archives(t *testing.T) files {
	t.Helper()
	inner := files{
		"Chart.yaml":         chartFile("inner", "1.0.0"),
		"values.yaml":        "\ufeffa: 1\n",
		"templates/all.yaml": configMap("inner", "  values: {{ .Values | toJson | quote }}\n"),
		"crds/crd.yaml":      configMap("inner-crd", "  a: b\n"),
	}
	middle := files{
		"Chart.yaml":             chartFile("middle", "1.0.0") + "dependencies: [{name: inner, version: 1.0.0, condition: inner.enabled}]\n",
		"values.yaml":            "inner: {enabled: true, a: 2}\n",
		"templates/all.yaml":     configMap("middle", "  values: {{ .Values | toJson | quote }}\n"),
		"charts/inner-1.0.0.tgz": string(archive(t, inner)),
	}
	return files{
		"Chart.yaml":              chartFile("outer", "1.0.0"),
		"values.yaml":             "middle: {inner: {a: 3}}\n",
		"templates/all.yaml":      configMap("outer", "  values: {{ .Values | toJson | quote }}\n"),
		"charts/middle-1.0.0.tgz": string(archive(t, middle)),
		"charts/middle.tgz.prov":  "signed\n",
		"charts/_ignored.yaml":    "a: b\n",
		"charts/.ignored/a.yaml":  "a: b\n",
	}
}

// jsonFiles returns a chart with JSON in all places, several values in a file too. Files in crds/ are read
// as JSON, whose texts can have more than those of YAML.
func jsonFiles() files {
	object := func(name, metadata, text string) string {
		return `{"apiVersion": "v1",` + "\n" + ` "kind": "ConfigMap", "metadata": {"name": "` + name + `"` + metadata + `}, "data": {"a": "` + text + `", "b": "{{ 1 }}"}}` + "\n"
	}
	template := func(name string) string { return object(name, "", `\u00e9\n`) }
	crd := func(name string) string { return object(name, "", `\u00e9\/\ud83d\ude42\n`) }
	return files{
		"Chart.yaml":          `{"apiVersion": "v2", "name": "json", "version": "1.0.0"}`,
		"values.yaml":         `{"a": 1e3, "b": [1.0, 12345678901234567890, "\u00e9"]}`,
		"templates/one.yaml":  template("one"),
		"templates/two.yaml":  template("two") + "---\n" + template("three"),
		"templates/hook.json": object("hook", `, "annotations": {"helm.sh/hook": "test"}`, "a"),
		"templates/all.yaml":  `{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "all"}, "spec": {{ .Values | toJson }}}`,
		"crds/one.json":       crd("crd-one"),
		"crds/two.json":       strings.TrimSpace(crd("crd-two")) + crd("crd-three") + crd("crd-four"),
		"crds/three.yaml":     crd("crd-five") + "---\n" + template("crd-six"),
		"crds/list.json":      `{"apiVersion": "v1", "kind": "List", "items": [` + crd("crd-seven") + `]}`,
	}
}

// tabs returns a chart with tabs where YAML has spaces.
func tabs() files {
	return files{
		"Chart.yaml":            chartFile("tabs", "1.0.0"),
		"values.yaml":           "text: \"a\tb\"\nlines: false\nstart: false\n",
		"templates/values.yaml": configMap("values", "  a:\t\"b\"\t# a comment\n  text: |\n    a\tb\t\n    \tc\n  quoted: \"a\tb\"\n  value: {{ .Values.text | quote }}\n"),
		"templates/spaces.yaml": "\t\n" + configMap("spaces", "  a: b\n") + "\t",
		"templates/lines.yaml":  "{{ if .Values.lines }}\n" + configMap("lines", "  a: b\n\t\n  c: d\n") + "{{ end }}\n",
		"templates/start.yaml":  "{{ if .Values.start }}\n" + configMap("start", "\ta: b\n") + "{{ end }}\n",
	}
}

// oddNames returns a chart with odd names of files.
func oddNames() files {
	chart := files{"Chart.yaml": chartFile("odd-names", "1.0.0")}
	for i, name := range []string{
		"a b.yaml", "é.yaml", "UPPER.YAML", "noextension", ".hidden.yaml", "a.yaml.tpl", "deep/er/a.yaml", "tests/a.yaml", "_dir/a.yaml", "{{ a }}.yaml", "~a.yaml", "a.tpl",
	} {
		chart["templates/"+name] = configMap(fmt.Sprintf("odd-%d", i), "  name: {{ .Template.Name | quote }}\n")
	}
	chart["templates/aNOTES.txt"] = "{{ .Release.Name }}: not YAML\n"
	chart["templates/deep/NOTES.txt"] = "a: b: c\n"
	return chart
}

// TestIndented leaves empty lines as they are.
func TestIndented(t *testing.T) {
	t.Parallel()
	if got, want := indented("a\n\n b\n", 2), "  a\n\n   b\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
