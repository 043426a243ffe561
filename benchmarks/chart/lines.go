package chart

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Lines draws how figures change with something that grows, on a logarithmic x axis.
type Lines struct {
	Title, X, Y string
	Lines       []Line
}

// Line is one series.
type Line struct {
	Label  string
	Points []Point // in the order of X
}

// Point is one of its points.
type Point struct {
	X float64
	Y Range
}

// SVG draws the chart. The values of the x axis must be above 0.
func (l Lines) SVG() ([]byte, error) {
	p := blank(l.Title)
	p.X.Label.Text, p.Y.Label.Text = l.X, l.Y
	var marks plot.ConstantTicks
	least, most, top := math.Inf(1), math.Inf(-1), 0.0
	seen := map[float64]bool{}
	for _, line := range l.Lines {
		for _, at := range line.Points {
			if err := finite(l.Title, math.Log(at.X), at.Y.Median, at.Y.Least, at.Y.Most); err != nil {
				return nil, err
			}
			least, most, top = min(least, at.X), max(most, at.X), max(top, at.Y.Most)
			if !seen[at.X] {
				seen[at.X] = true
				marks = append(marks, plot.Tick{Value: at.X, Label: short(at.X)})
			}
		}
	}
	if len(marks) == 0 {
		return nil, fmt.Errorf("draw %q: no points", l.Title)
	}
	p.X.Scale, p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogScale{}, marks, ticks{plot.DefaultTicks{}}
	p.Add(lines{l})
	p.X.Min, p.X.Max = least/1.15, most*1.15*math.Pow(most/least, 0.45) // room for the legend; after Add, which widens
	p.Y.Min, p.Y.Max = 0, max(top*1.08, 1e-9)
	for i, line := range l.Lines {
		p.Legend.Add(line.Label+" ", swatch(series[i%len(series)]))
	}
	return svg(p, 270)
}

type lines struct{ Lines }

func (l lines) DataRange() (xmin, xmax, ymin, ymax float64) { return 1, 1, 0, 0 }

func (l lines) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if at := y(t.Value); !t.IsMinor() && at > c.Min.Y && at <= c.Max.Y {
			c.StrokeLine2(draw.LineStyle{Color: faint, Width: 0.5}, c.Min.X, at, c.Max.X, at)
		}
	}
	for i, line := range l.Lines.Lines {
		hue := series[i%len(series)]
		style := draw.LineStyle{Color: hue, Width: 1.6}
		if i >= len(series) {
			style.Dashes = []vg.Length{4, 2}
		}
		var path []vg.Point
		for _, at := range line.Points {
			path = append(path, vg.Point{X: x(at.X), Y: y(at.Y.Median)})
			c.StrokeLine2(draw.LineStyle{Color: hue, Width: 0.9}, x(at.X), y(at.Y.Least), x(at.X), y(at.Y.Most))
			c.DrawGlyph(draw.GlyphStyle{Color: hue, Radius: 2.6, Shape: draw.CircleGlyph{}}, path[len(path)-1])
		}
		c.StrokeLines(style, path)
	}
}
