// Command plot draws results of benchmarks over the number of extensions: it reads the
// lines of test/bench/fleet on its standard input, and writes an SVG with a diagram for
// each metric to its standard output. Results that are not about a number of extensions
// are left out. Its module is its own, so that the product does not depend on what draws.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image/color"
	"io"
	"os"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Size of each diagram.
const (
	width  = 6 * vg.Centimeter
	height = 6 * vg.Centimeter
)

// curve is a metric of a benchmark, over the number of extensions.
type curve struct {
	benchmark, metric string
	points            plotter.XYs
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	curves, err := read(in)
	if err != nil {
		return err
	}
	return render(curves, out)
}

// read has curves in the order in which they begin.
func read(in io.Reader) ([]*curve, error) {
	var curves []*curve
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var line struct {
			Benchmark  string  `json:"benchmark"`
			Extensions int     `json:"extensions"`
			Metric     string  `json:"metric"`
			Value      float64 `json:"value"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("reading %q: %w", lines.Text(), err)
		}
		if line.Extensions == 0 {
			continue
		}
		point := plotter.XY{X: float64(line.Extensions), Y: line.Value}
		curves = add(curves, line.Benchmark, line.Metric, point)
	}
	if len(curves) == 0 && lines.Err() == nil {
		return nil, errors.New("no result is about a number of extensions")
	}
	return curves, lines.Err()
}

func add(curves []*curve, benchmark, metric string, point plotter.XY) []*curve {
	for _, c := range curves {
		if c.benchmark == benchmark && c.metric == metric {
			c.points = append(c.points, point)
			return curves
		}
	}
	return append(curves, &curve{benchmark: benchmark, metric: metric, points: plotter.XYs{point}})
}

// render draws the curves beside each other.
func render(curves []*curve, out io.Writer) error {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	row := make([]*plot.Plot, len(curves))
	for i, c := range curves {
		diagram, err := c.diagram()
		if err != nil {
			return err
		}
		row[i] = diagram
	}
	svg := vgsvg.New(width*vg.Length(len(row)), height)
	all := draw.New(svg)
	all.FillPolygon(color.White, []vg.Point{all.Min, {X: all.Max.X, Y: all.Min.Y}, all.Max, {X: all.Min.X, Y: all.Max.Y}})
	tiles := draw.Tiles{Rows: 1, Cols: len(row), PadX: 4 * vg.Millimeter, PadTop: vg.Millimeter, PadLeft: vg.Millimeter, PadRight: 4 * vg.Millimeter}
	for i, canvas := range plot.Align([][]*plot.Plot{row}, tiles, all)[0] {
		row[i].Draw(canvas)
	}
	var text bytes.Buffer
	if _, err := svg.WriteTo(&text); err != nil {
		return err
	}
	// Where the font is not there, one with serifs would be taken.
	_, err := out.Write(bytes.ReplaceAll(text.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,sans-serif")))
	return err
}

func (c *curve) diagram() (*plot.Plot, error) {
	line, points, err := plotter.NewLinePoints(c.points)
	if err != nil {
		return nil, fmt.Errorf("drawing %s: %w", c.metric, err)
	}
	p := plot.New()
	p.Title.Text = c.benchmark + ":\n" + strings.ReplaceAll(c.metric, "-", " ")
	p.X.Label.Text = "extensions"
	p.X.Min, p.Y.Min = 0, 0
	p.Add(plotter.NewGrid(), line, points)
	return p, nil
}
