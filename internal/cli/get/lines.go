package get

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/overview"
)

// gap is between columns.
const gap = 3

// widths are those of the columns of a table, in characters. Lines that follow a table are as
// wide as it is where they fit.
type widths []int

func widthsOf(rows [][]string) widths {
	columns := make(widths, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			columns[i] = max(columns[i], utf8.RuneCountInString(cell))
		}
	}
	return columns
}

func (w widths) line(row []string) string {
	var text strings.Builder
	for i, cell := range row {
		text.WriteString(cell)
		text.WriteString(strings.Repeat(" ", gap+max(0, w[i]-utf8.RuneCountInString(cell))))
	}
	return strings.TrimRight(text.String(), " ")
}

// changes prints the lines that differ from those printed before.
type changes struct {
	printed map[string]string // by the name of the extension
	widths  widths
	to      io.Writer
}

func (c *changes) next(ext *ocv1.ClusterExtension, deleted bool) (bool, error) {
	row := overview.RowOf(ext)
	if deleted {
		row.Health, row.Message = overview.Deleted, ""
	}
	line := c.widths.line(cells(row))
	if c.printed[row.Name] == line {
		return false, nil
	}
	c.printed[row.Name] = line
	if deleted {
		delete(c.printed, row.Name)
	}
	_, err := fmt.Fprintln(c.to, line)
	return false, err
}
