// Package chart draws small SVG pictures of figures with their ranges: bars, dots on a logarithmic scale, and lines.
// The same figures give the same bytes, so that a picture in a repository changes only when they do. Pictures have a
// background of their own, for pages of any colour.
package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Range is a median and the least and the most of all rounds.
type Range struct{ Median, Least, Most float64 }

// The colours of a picture. Those of series can be told apart by people who do not see all colours.
var (
	paper  = color.RGBA{R: 0xff, G: 0xff, B: 0xff, A: 0xff}
	ink    = color.RGBA{R: 0x24, G: 0x29, B: 0x2f, A: 0xff}
	faint  = color.RGBA{R: 0xe1, G: 0xe4, B: 0xe8, A: 0xff}
	accent = color.RGBA{R: 0x0b, G: 0x66, B: 0xc3, A: 0xff}
	muted  = color.RGBA{R: 0xa3, G: 0xad, B: 0xb8, A: 0xff}
	series = []color.RGBA{
		{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}, {R: 0xe6, G: 0x9f, B: 0x00, A: 0xff},
		{R: 0x00, G: 0x9e, B: 0x73, A: 0xff},
		{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff}, {R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
		{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff},
		{R: 0x6b, G: 0x6b, B: 0x6b, A: 0xff}, {R: 0xa0, G: 0x90, B: 0x10, A: 0xff},
	}
)

const width = 560 // points

// blank is a plot with the fonts and colours of all charts.
func blank(title string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = paper
	p.Title.Text, p.Title.Padding = title, 6
	sans(&p.Title.TextStyle, 13)
	sans(&p.Legend.TextStyle, 10)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		sans(&axis.Label.TextStyle, 10)
		sans(&axis.Tick.Label, 10)
		axis.Color, axis.Tick.Color, axis.Tick.Length = ink, ink, 4
	}
	p.Legend.Top, p.Legend.Padding, p.Legend.ThumbnailWidth = true, 2, 14
	return p
}

func sans(s *text.Style, size vg.Length) {
	s.Font.Typeface, s.Font.Variant, s.Font.Size, s.Color = "Liberation", "Sans", size, ink
}

// svg draws the plot. Where the font that it was laid out with is missing, others of the same widths take its place.
func svg(p *plot.Plot, height vg.Length) (out []byte, err error) {
	canvas := vgsvg.New(width, height)
	inner := draw.Crop(draw.New(canvas), 10, -14, 8, -8)
	full := draw.New(canvas)
	full.FillPolygon(paper, rectangle(full.Min, full.Max))
	p.Draw(inner)
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("draw %q: %w", p.Title.Text, err)
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), nil
}

func rectangle(least, most vg.Point) []vg.Point {
	return []vg.Point{least, {X: most.X, Y: least.Y}, most, {X: least.X, Y: most.Y}}
}

// whisker draws a range along the x axis.
func whisker(c draw.Canvas, style draw.LineStyle, from, to, y vg.Length) {
	const cap = 2.5
	c.StrokeLine2(style, from, y, to, y)
	c.StrokeLine2(style, from, y-cap, from, y+cap)
	c.StrokeLine2(style, to, y-cap, to, y+cap)
}

// grid draws a line at every labelled tick of the x axis.
func grid(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	for _, t := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
		if at := x(t.Value); !t.IsMinor() && at > c.Min.X && at <= c.Max.X {
			c.StrokeLine2(draw.LineStyle{Color: faint, Width: 0.5}, at, c.Min.Y, at, c.Max.Y)
		}
	}
}

// finite refuses what cannot be drawn.
func finite(title string, values ...float64) error {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("draw %q: %v is no figure", title, v)
		}
	}
	return nil
}

// short keeps three digits or so.
func short(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1e6:
		return fmt.Sprintf("%.3gM", v/1e6)
	case a >= 10_000:
		return fmt.Sprintf("%.1fk", v/1000)
	case a >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// ticks labels the ticks of another marker briefly.
type ticks struct{ plot.Ticker }

func (t ticks) Ticks(least, most float64) []plot.Tick {
	out := t.Ticker.Ticks(least, most)
	for i := range out {
		if !out[i].IsMinor() {
			out[i].Label = short(out[i].Value)
		}
	}
	return out
}
