package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Print prints a value for programs, as JSON or YAML.
func Print(to io.Writer, format *Choice, value any) error {
	if format.value == YAML {
		text, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = to.Write(text)
		return err
	}
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	if err := out.Encode(value); err != nil {
		return err
	}
	_, err := to.Write(escaped(text.Bytes()))
	return err
}

// escaped writes in JSON as escapes what would turn writing around on a terminal. It means the
// same: such characters are nowhere but in strings.
func escaped(text []byte) []byte {
	var out bytes.Buffer
	for _, r := range string(text) {
		switch {
		case r < utf8.RuneSelf || unicode.IsPrint(r):
			out.WriteRune(r)
		case r <= lastBasicRune:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			first, second := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, first, second)
		}
	}
	return out.Bytes()
}

// lastBasicRune is the last character that JSON has one escape for; others take two.
const lastBasicRune = 0xFFFF

// PrintProblems prints one problem per line, or all as a list of objects. It returns an
// error if there are errors among them, and otherwise tells people how many warnings
// there are.
func PrintProblems[P fmt.Stringer, S ~string](command *cobra.Command, format *Choice, problems []P, severity func(P) S) error {
	count := map[string]int{}
	for _, problem := range problems {
		count[string(severity(problem))]++
	}
	write := func(to io.Writer) error { return PrintLines(to, problems) }
	if format.value != Text {
		write = func(to io.Writer) error { return Print(to, format, append([]P{}, problems...)) }
	}
	if err := write(command.OutOrStdout()); err != nil {
		return err
	}
	text := Counted(count["error"], "error") + ", " + Counted(count["warning"], "warning")
	if count["error"] > 0 {
		return errors.New(text)
	}
	fmt.Fprintln(command.ErrOrStderr(), text)
	return nil
}

// PrintLines prints one item per line, without what would turn writing around. Tabs stay: texts
// in YAML have them.
func PrintLines[T any](to io.Writer, items []T) error {
	for _, item := range items {
		if _, err := fmt.Fprintln(to, excerpt.Printable(fmt.Sprint(item), "\t")); err != nil {
			return err
		}
	}
	return nil
}

// PrintObjects prints objects as a List in JSON, which is what kubectl prints and takes,
// or as YAML documents, which document makes.
func PrintObjects[T any](to io.Writer, format *Choice, objects []T, content func(T) any, document func(T) (string, error)) error {
	if format.value == JSON {
		items := make([]any, len(objects))
		for i, object := range objects {
			items[i] = content(object)
		}
		return Print(to, format, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	}
	for _, object := range objects {
		text, err := document(object)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(to, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}

// Chosen names a bundle that is chosen, for people: by the catalog that it is from or, where the
// spec names its image, by that.
func Chosen(name, version, catalog, image string) string {
	if catalog == "" {
		return fmt.Sprintf("%q version %q of image %s", name, version, image)
	}
	return fmt.Sprintf("%q version %q from catalog %q", name, version, catalog)
}

// Counted returns n with the word for it, in the plural where that is due.
func Counted(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// Printable returns the start of text without what would move the cursor or turn
// writing around: texts of catalogs may come from anybody.
func Printable(text string) string {
	const most = 2000
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "..."
	}
	return excerpt.Printable(text, "")
}
