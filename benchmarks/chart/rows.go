package chart

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Row is one line of a chart of rows. One without values is the heading of those that follow.
type Row struct {
	Label  string
	Values []Range // of each series
	Accent bool    // whether it is the one that the chart is about
}

// Bars draws horizontal bars, one a row: of one series, or of several that add up, without ranges then.
type Bars struct {
	Title, Axis string
	Series      []string // their names, if there are several
	Rows        []Row
}

// SVG draws the chart.
func (b Bars) SVG() ([]byte, error) {
	p, most := rowsPlot(b.Title, b.Axis, b.Rows), 0.0
	for _, r := range b.Rows {
		sum := 0.0
		for _, v := range r.Values {
			if err := finite(b.Title, v.Median, v.Least, v.Most); err != nil {
				return nil, err
			}
			sum += v.Median
		}
		if len(r.Values) == 1 {
			sum = max(sum, r.Values[0].Most)
		}
		most = max(most, sum)
	}
	p.X.Min, p.X.Max = 0, max(most*1.12, 1e-9) // room for the number behind the longest
	p.X.Tick.Marker = ticks{plot.DefaultTicks{}}
	p.Add(bars{b})
	if len(b.Series) > 1 {
		for i, name := range b.Series {
			p.Legend.Add(name+" ", swatch(series[i%len(series)]))
		}
	}
	return svg(p, rowsHeight(b.Rows, len(b.Series) > 1))
}

// Dots draws a dot with its range for every series of every row, on a logarithmic scale.
type Dots struct {
	Title, Axis string
	Series      []string
	Rows        []Row
}

// SVG draws the chart. Values must be above 0.
func (d Dots) SVG() ([]byte, error) {
	p := rowsPlot(d.Title, d.Axis, d.Rows)
	least, most := math.Inf(1), math.Inf(-1)
	for _, r := range d.Rows {
		for _, v := range r.Values {
			if err := finite(d.Title, math.Log(v.Median), math.Log(v.Least), math.Log(v.Most)); err != nil {
				return nil, err
			}
			least, most = min(least, v.Least), max(most, v.Most)
		}
	}
	if err := finite(d.Title, least, most); err != nil {
		return nil, err
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ticks{plot.LogTicks{Prec: -1}}
	p.Add(dots{d})
	// after Add, which widens
	p.X.Min, p.X.Max = math.Pow(10, math.Floor(math.Log10(least))), math.Pow(10, math.Ceil(math.Log10(most*1.01)))
	for i, name := range d.Series {
		p.Legend.Add(name+" ", swatch(series[i%len(series)]))
	}
	return svg(p, rowsHeight(d.Rows, true))
}

// rowsPlot has a labelled place for every row, the first one at the top.
func rowsPlot(title, axis string, rows []Row) *plot.Plot {
	p := blank(title)
	p.X.Label.Text = axis
	var marks plot.ConstantTicks
	for i, at := range places(rows) {
		marks = append(marks, plot.Tick{Value: at, Label: rows[i].Label})
	}
	p.Y.Tick.Marker, p.Y.Tick.Length, p.Y.LineStyle.Width, p.Y.Padding = marks, 0, 0, 12
	p.Y.Min, p.Y.Max = -0.7, 0.7
	if len(marks) > 0 {
		p.Y.Min = marks[len(marks)-1].Value - 0.7
	}
	return p
}

// places are where the rows stand: 0 and downwards.
func places(rows []Row) []float64 {
	out, at := make([]float64, len(rows)), 0.0
	for i, r := range rows {
		if i > 0 {
			at--
		}
		if len(r.Values) == 0 && i > 0 {
			at -= 0.4
		}
		out[i] = at
	}
	return out
}

func rowsHeight(rows []Row, legend bool) vg.Length {
	at := places(rows)
	height := vg.Length(82)
	if legend {
		height += 30 // above the rows, see headroom
	}
	if len(at) > 0 {
		height += vg.Length(-at[len(at)-1]) * 17
	}
	return height
}

type bars struct{ Bars }

const half = 5 // of a bar's thickness

func (b bars) DataRange() (xmin, xmax, ymin, ymax float64) {
	return 0, 0, 0, headroom(len(b.Series) > 1)
}

// headroom is the y up to which a plot goes, in rows.
func headroom(legend bool) float64 {
	if legend {
		return 2.4
	}
	return 0.7
}

func (b bars) Plot(c draw.Canvas, p *plot.Plot) {
	grid(c, p)
	x, y := p.Transforms(&c)
	for i, at := range places(b.Rows) {
		r, from := b.Rows[i], 0.0
		for part, v := range r.Values {
			to := from + v.Median
			c.FillPolygon(b.colour(r, part),
				rectangle(vg.Point{X: x(from), Y: y(at) - half}, vg.Point{X: x(to), Y: y(at) + half}))
			from = to
		}
		end := x(from)
		if len(r.Values) == 1 && r.Values[0].Least < r.Values[0].Most {
			whisker(c, draw.LineStyle{Color: ink, Width: 0.8}, x(r.Values[0].Least), x(r.Values[0].Most), y(at))
			end = max(end, x(r.Values[0].Most))
		}
		style := p.X.Tick.Label
		style.XAlign, style.YAlign = draw.XLeft, draw.YCenter
		if len(r.Values) > 0 {
			c.FillText(style, vg.Point{X: end + 5, Y: y(at)}, short(from))
		}
	}
}

func (b bars) colour(r Row, part int) color.RGBA {
	switch {
	case len(b.Series) > 1:
		return series[part%len(series)]
	case r.Accent:
		return accent
	}
	return muted
}

type dots struct{ Dots }

func (d dots) DataRange() (xmin, xmax, ymin, ymax float64) { return 1, 1, 0, headroom(true) }

func (d dots) Plot(c draw.Canvas, p *plot.Plot) {
	grid(c, p)
	x, y := p.Transforms(&c)
	for i, at := range places(d.Rows) {
		c.StrokeLine2(draw.LineStyle{Color: faint, Width: 0.5}, c.Min.X, y(at), c.Max.X, y(at))
		for part, v := range d.Rows[i].Values {
			hue := series[part%len(series)]
			whisker(c, draw.LineStyle{Color: hue, Width: 1}, x(v.Least), x(v.Most), y(at))
			c.DrawGlyph(draw.GlyphStyle{Color: hue, Radius: 3.2, Shape: draw.CircleGlyph{}},
				vg.Point{X: x(v.Median), Y: y(at)})
		}
	}
}

// swatch is a series' colour in a legend.
type swatch color.RGBA

func (s swatch) Thumbnail(c *draw.Canvas) {
	middle := c.Center().Y
	c.FillPolygon(color.RGBA(s),
		rectangle(vg.Point{X: c.Min.X, Y: middle - 3.5}, vg.Point{X: c.Max.X, Y: middle + 3.5}))
}
