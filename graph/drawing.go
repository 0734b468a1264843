package graph

import (
	"time"

	"github.com/egretstream/egret/topology"
)

// A Drawing is a picture as data, for a page that draws it again and again with other
// numbers. Lengths are pixels. Nothing in it overlaps; see the package. Its boxes have room for
// four rows of text, its labels for one more below the line.
type Drawing struct {
	Width      int    `json:"width"`
	Height     int    `json:"height"`
	About      string `json:"about"` // all of it in words, for those who do not see it
	Components []Box  `json:"components"`
	Edges      []Edge `json:"edges"`
}

// A Box is a component. They are in the order of the plan.
type Box struct {
	Component string        `json:"component"`
	Kind      string        `json:"kind"`               // spout, queue, bolt, coordinator
	Tasks     int           `json:"tasks"`              // as the plan has them; a later plan may have others
	Every     time.Duration `json:"every_ns,omitempty"` // between its ticks; 0: it has none
	Holds     time.Duration `json:"holds_ns,omitempty"` // for how long it may keep a tuple; 0: it has not said so
	About     string        `json:"about"`
	Title     string        `json:"title"` // in full
	X         int           `json:"x"`     // its left
	Y         int           `json:"y"`     // its top
	W         int           `json:"w"`
	H         int           `json:"h"`
}

// An Edge is a subscription. They are in the order of the components that subscribe, and
// of their inputs.
type Edge struct {
	From     string   `json:"from"`
	Stream   string   `json:"stream"`
	To       string   `json:"to"`
	Input    int      `json:"input"` // of To
	Grouping string   `json:"grouping"`
	Fields   []string `json:"fields"`  // of the stream
	Label    string   `json:"label"`   // above the line
	Below    string   `json:"below"`   // and below it
	Title    string   `json:"title"`   // in full
	Path     string   `json:"path"`    // in the language of SVG
	LabelX   int      `json:"label_x"` // the middle of the label
	LabelY   int      `json:"label_y"`
}

// Draw lays a plan out.
func Draw(p *topology.Plan) *Drawing {
	l := arrange(p, live)
	up := header // a page has a header of its own
	d := &Drawing{Width: l.w, Height: l.h - up, About: description(p), Components: []Box{}, Edges: []Edge{}}
	for _, s := range l.boxes {
		n := &p.Components[s.component]
		d.Components = append(d.Components, Box{
			Component: n.Name, Kind: n.Kind(), Tasks: n.Parallel, Every: n.Every, Holds: n.Holds, About: about(n), Title: told(n),
			X: s.x, Y: s.y - s.h/2 - up, W: s.w, H: s.h,
		})
	}
	for _, ln := range l.lines {
		in, s := p.Components[ln.component].Inputs[ln.input].Stream, ln.label
		d.Edges = append(d.Edges, Edge{
			From: in.Component, Stream: in.Stream, To: p.Components[ln.component].Name, Input: ln.input,
			Grouping: p.Label(ln.component, ln.input), Fields: append([]string{}, in.Fields...),
			Label: short(ln.above), Below: short(ln.below), Title: said(p, ln.component, ln.input),
			Path: ln.path(-up), LabelX: s.x + s.w/2, LabelY: s.y - up,
		})
	}
	return d
}
