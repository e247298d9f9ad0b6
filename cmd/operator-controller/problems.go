package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Formats of a list of problems.
const (
	outputText = "text"
	outputJSON = "json"
)

const problemsFlag = "Format of the list: text or json."

func checkProblemsOutput(output string) error {
	if output != outputText && output != outputJSON {
		return fmt.Errorf("unknown output %q: it is %s or %s", output, outputText, outputJSON)
	}
	return nil
}

// printProblems prints one problem per line, or all as a list of objects.
func printProblems[P fmt.Stringer](to io.Writer, output string, problems []P) error {
	if output == outputJSON {
		if problems == nil {
			problems = []P{}
		}
		return printJSON(to, problems)
	}
	for _, problem := range problems {
		if _, err := fmt.Fprintln(to, problem); err != nil {
			return err
		}
	}
	return nil
}

// verdict returns an error if there are errors, and otherwise tells people how
// many warnings there are.
func verdict(to io.Writer, errorCount, warningCount int) error {
	text := counted(errorCount, "error") + ", " + counted(warningCount, "warning")
	if errorCount > 0 {
		return errors.New(text)
	}
	fmt.Fprintln(to, text)
	return nil
}

// counted returns n with the word for it, in the plural where that is due.
func counted(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

func printJSON(to io.Writer, value any) error {
	out := json.NewEncoder(to)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(value)
}
