package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Formats that most commands print.
const (
	Text = "text"
	JSON = "json"
	YAML = "yaml"
)

// Choice is a flag that has one of some values.
type Choice struct {
	name, value string
	values      []string
}

// NewChoice is a flag of the name. The first of the values is its default.
func NewChoice[V ~string](name string, values ...V) *Choice {
	c := &Choice{name: name}
	for _, value := range values {
		c.values = append(c.values, string(value))
	}
	c.value = c.values[0]
	return c
}

// NewOutput is the flag for the format, of which the first is the default.
func NewOutput(formats ...string) *Choice { return NewChoice("output", formats...) }

// Bind gives the flag to the command.
func (c *Choice) Bind(command *cobra.Command, shorthand, usage string) {
	command.Flags().VarP(c, c.name, shorthand, usage)
	complete := cobra.FixedCompletions(c.values, cobra.ShellCompDirectiveNoFileComp)
	_ = command.RegisterFlagCompletionFunc(c.name, complete) // it fails for flags that there are not
}

func (c *Choice) String() string { return c.value }

// Type is what help texts show for the value.
func (c *Choice) Type() string { return strings.Join(c.values, "|") }

// Set takes one of the values.
func (c *Choice) Set(value string) error {
	if !slices.Contains(c.values, value) {
		last := len(c.values) - 1
		return fmt.Errorf("unknown %s %q: it is %s or %s", c.name, value, strings.Join(c.values[:last], ", "), c.values[last])
	}
	c.value = value
	return nil
}
