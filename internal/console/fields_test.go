package console

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sampleSchema = `{"type": "object", "required": ["size"], "properties": {
	"watchNamespace": {"type": "string"},
	"name": {"type": "string", "pattern": "^[a-z]+$", "description": "What it is called."},
	"level": {"type": "string", "enum": ["info", "debug"]},
	"on": {"type": "boolean", "default": true},
	"size": {"type": "integer", "minimum": 1},
	"more": {"type": "object", "properties": {"env": {"type": "array"}, "resources": {"$ref": "#/x"}}},
	"any": true
}}`

func decodeSchema(t *testing.T, text string) map[string]any {
	t.Helper()
	var schema map[string]any
	if err := json.Unmarshal([]byte(text), &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// Each property has the field that fits its type, and the namespace to watch has its own.
func TestFieldsOfASchema(t *testing.T) {
	t.Parallel()
	got := fieldsOf(decodeSchema(t, sampleSchema), form{Values: map[string]string{"text.name": "x", "yaml.name": "y", "yaml.size": "3"}})
	want := []configField{
		{Key: "any", Name: "yaml.any", Lines: true},
		{Key: "level", Name: "text.level", Options: []string{"info", "debug"}, Hint: "string"},
		{Key: "more", Name: "yaml.more", Lines: true, Hint: "object; of env (array), resources (object)"},
		{Key: "name", Name: "text.name", Value: "x", Hint: "What it is called.; string; pattern ^[a-z]+$"},
		{Key: "on", Name: "yaml.on", Options: []string{"true", "false"}, Hint: "boolean; default true"},
		{Key: "size", Name: "yaml.size", Value: "3", Hint: "integer; minimum 1", Required: true},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(configField{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := fieldsOf(nil, form{}); len(got) > 0 {
		t.Errorf("got %+v", got)
	}
}

// A schema with more properties than a form has fields is cut, and so is what is sent.
func TestFieldsAreBounded(t *testing.T) {
	t.Parallel()
	properties, values := map[string]any{}, url.Values{}
	for i := range 2 * maxConfigFields {
		properties[fmt.Sprint("p", i)] = map[string]any{}
		values.Set(fmt.Sprint("text.p", i), "x")
	}
	if got := fieldsOf(map[string]any{"properties": properties}, form{}); len(got) != maxConfigFields {
		t.Errorf("%d fields", len(got))
	}
	if got := newForm(values, "p"); len(got.Values) != maxConfigFields {
		t.Errorf("%d values", len(got.Values))
	}
	if got := texts(make([]any, 2*maxConfigFields)); len(got) > maxConfigFields {
		t.Errorf("%d options", len(got))
	}
}

// What may be watched goes by the install modes.
func TestWhatMayBeWatched(t *testing.T) {
	t.Parallel()
	type may struct{ none, own, other, several bool }
	for modes, want := range map[string]may{
		"":                         {true, true, true, true},
		modeAll:                    {true, false, false, false},
		modeOwn:                    {true, true, false, false},
		modeSingle:                 {false, false, true, false},
		modeOwn + " " + modeAll:    {true, true, false, false},
		modeOwn + " " + modeSingle: {false, true, true, false},
		modeAll + " " + modeSingle: {true, false, true, false},
		modeMulti:                  {false, true, true, true},
		modeMulti + " " + modeOwn:  {true, true, true, true},
		modeMulti + " " + modeAll:  {true, true, true, true},
	} {
		w := watchingOf(strings.Fields(modes))
		can := func(watch ...string) bool { return w.problem("here", watch) == "" }
		got := may{can(), can("here"), can("there"), can("here", "there")}
		if got != want || w.Hint == "" {
			t.Errorf("%q: got %+v, want %+v, %+v", modes, got, want, w)
		}
	}
}

// Several namespaces are a list, and so is one that the operator cannot watch by the other key.
func TestSeveralNamespacesAreAList(t *testing.T) {
	t.Parallel()
	const list, one = "watchNamespaces:", "watchNamespace: "
	for name, tc := range map[string]struct{ modes, watch, want string }{
		"several":                    {modeMulti, "there, here ,there", list + "\n      - here\n      - there"},
		"one of several":             {modeMulti, "there", list + "\n      - there"},
		"its own, of several":        {modeMulti + "," + modeSingle, "ops", list + "\n      - ops"},
		"one by itself":              {modeMulti + "," + modeSingle, "there", one + "there"},
		"one, and nothing is known":  {"", "there", one + "there"},
		"some, and nothing is known": {"", "here there", list},
		"more than it can":           {modeSingle, "a,b", "the operator cannot watch 2 namespaces: it can be a namespace other than its own"},
		"what is no name":            {modeMulti, "a,B", "the namespace to watch &#34;B&#34; cannot be one"},
		"more than there may be":     {modeMulti, strings.Join(numbered(101), ","), "101 namespaces to watch, more than 100"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var supported []string
			for mode := range strings.FieldsFuncSeq(tc.modes, func(r rune) bool { return r == ',' }) {
				supported = append(supported, fmt.Sprintf(`{"type":%q,"supported":true}`, mode))
			}
			stated := strings.Replace(fmt.Sprintf(samplePackage, pixel), `{"type":"AllNamespaces","supported":true},{"type":"OwnNamespace"}`, strings.Join(supported, ","), 1)
			w := packageWorld(t, stated)
			query := "?make=1&name=p&namespace=ops&account=a&watch=" + url.QueryEscape(tc.watch)
			body := w.get(t, "/packages/c/p"+query)
			if !strings.Contains(body, tc.want) {
				t.Fatalf("want %q in\n%s", tc.want, body)
			}
			_, download, found := strings.Cut(body, `<a class="button" href="`)
			if !found {
				return // of what cannot be made there is none
			}
			download, _, _ = strings.Cut(download, `"`)
			if _, file, _ := w.ask(t, html.UnescapeString(download)); !strings.Contains(file, tc.want) {
				t.Errorf("want %q in the file\n%s", tc.want, file)
			}
		})
	}
	if _, err := (form{Watch: "a,b", Config: "watchNamespaces: [c]"}).config(); err == nil || !strings.Contains(err.Error(), "is in the configuration already") {
		t.Errorf("error %v", err)
	}
}

func numbered(count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("n-%d", i)
	}
	return names
}

// The fields of a bundle's configuration are there when they are asked for, and what is filled
// in is in the manifest, and held against the schema.
func TestTheFieldsOfAConfiguration(t *testing.T) {
	t.Parallel()
	w := packageWorld(t, fmt.Sprintf(samplePackage, pixel))
	w.config = Configuration{Bundle: "p.v1.0.0", Schema: decodeSchema(t, sampleSchema)}
	if body := w.get(t, "/packages/c/p"); strings.Contains(body, `id="fields"`) || !strings.Contains(body, "Fields of the configuration") || !strings.Contains(body, "all namespaces") {
		t.Errorf("got\n%s", body)
	}
	const base = "/packages/c/p?fields=1&name=p&namespace=n&account=a"
	body := w.get(t, base)
	for _, want := range []string{"Configuration of p.v1.0.0", `name="text.name"`, `name="yaml.size"`, "size (required)", "minimum 1", `value="p"`} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing in\n%s", want, body)
		}
	}
	if strings.Contains(body, "This cannot be made") || strings.Contains(body, `id="made"`) {
		t.Errorf("got\n%s", body)
	}
	const filled = "&make=1&text.name=true&yaml.size=3&yaml.on=true&yaml.more=env%3A+%5B%5D&text.level=debug"
	body = w.get(t, base+filled)
	_, file, _ := w.ask(t, strings.Replace(base, "/p?", "/p/manifest?", 1)+filled)
	const want = "    inline:\n      level: debug\n      more:\n        env: []\n      name: \"true\"\n      \"on\": true\n      size: 3\n"
	if !strings.Contains(file, want) || !strings.Contains(body, `<option value="debug" selected>`) || !strings.Contains(body, "text.name=true") {
		t.Errorf("got\n%s\n%s", file, body)
	}
	for query, want := range map[string]string{
		"&yaml.size=%5B":                                     "the configuration: &#34;size&#34;: ",
		"&yaml.size=3&config=size%3A+2":                      "&#34;size&#34; is in the configuration already",
		"&watch=here":                                        "the operator cannot watch",
		"&watch=x&config=watchNamespace%3A+y":                "&#34;watchNamespace&#34; is in the configuration already",
		"&text.name=" + strings.Repeat("x", maxFieldBytes+1): "the configuration &#34;name&#34; is larger",
	} {
		if body := w.get(t, base+"&make=1"+query); !strings.Contains(body, want) || strings.Contains(body, `id="made"`) {
			t.Errorf("%.60s: want %q in\n%.6000s", query, want, body)
		}
	}
	w.config.Problems = []string{"field <size> must be at least 1"}
	if body := w.get(t, base+"&make=1"); !strings.Contains(body, "field &lt;size&gt; must be") || strings.Contains(body, `id="made"`) {
		t.Errorf("got\n%s", body)
	}
	w.err = errForbidden
	if code, _, _ := w.ask(t, base); code != http.StatusServiceUnavailable {
		t.Errorf("code %d", code)
	}
}
