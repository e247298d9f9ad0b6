package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
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
	out := json.NewEncoder(to)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(value)
}

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

// PrintLines prints one item per line.
func PrintLines[T any](to io.Writer, items []T) error {
	for _, item := range items {
		if _, err := fmt.Fprintln(to, item); err != nil {
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
	return Harmless(text)
}

// Harmless returns the whole text without what [Printable] leaves out.
func Harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
