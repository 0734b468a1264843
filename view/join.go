package view

import "slices"

// Join puts together what is known of a cluster. Whole says what there is: nodes, runs, and
// their tasks, each with the node that has it, of which nothing else is known. Parts are
// samples of single nodes: of themselves, and of what they have done of the runs; a task
// that they no longer have has no Node there. What whole does not have is left out. Whole
// is filled in and returned; parts are not changed.
func Join(whole *Sample, parts ...*Sample) *Sample {
	for _, p := range parts {
		for i := range p.Nodes {
			whole.node(&p.Nodes[i])
		}
		for i := range p.Runs {
			of := &p.Runs[i]
			at := slices.IndexFunc(whole.Runs, func(r Run) bool { return r.Topology == of.Topology && r.Run == of.Run })
			if at >= 0 {
				whole.Runs[at].join(of)
			}
		}
	}
	return whole
}

// node takes in what a node says of itself.
func (s *Sample) node(of *Node) {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Node == of.Node && n.ID == of.ID {
			n.Version, n.Up, n.CPU, n.Memory, n.Cores = of.Version, of.Up, of.CPU, of.Memory, of.Cores
		}
	}
}

// join takes in what a node says of a run.
func (r *Run) join(of *Run) {
	if r.Graph == nil {
		r.Graph, r.Streams = of.Graph, of.Streams
	}
	if r.Settings == nil {
		r.Settings = of.Settings
	}
	if r.Guarantee == "" {
		r.Guarantee = of.Guarantee
	}
	at := make(map[string]int, len(r.Tasks))
	for i := range r.Tasks {
		at[r.Tasks[i].Task] = i
	}
	here := map[string]bool{}
	for i := range of.Tasks {
		here[of.Tasks[i].Task] = of.Tasks[i].Node != ""
	}
	for i := range of.Troubles {
		if x := &of.Troubles[i]; x.Kind != "stuck" || here[x.Task] { // else the task is elsewhere by now
			r.trouble(x)
		}
	}
	for i := range of.Tasks {
		t := &of.Tasks[i]
		k, there := at[t.Task]
		if !there { // another one of its component has what it did
			k = slices.IndexFunc(r.Tasks, func(o Task) bool { return o.Component == t.Component })
		}
		if k < 0 {
			continue
		}
		if there && r.Tasks[k].Node == t.Node {
			past := r.Tasks[k].Past
			r.Tasks[k] = *t
			r.Tasks[k].Past = past
		} else {
			r.Tasks[k].before(t)
		}
	}
	if of.Batches != nil {
		r.Batches = of.Batches
	}
}

// trouble takes in what a node has met: of deaths of a component the last one.
func (r *Run) trouble(x *Trouble) {
	if x.Kind == "died" {
		same := func(o Trouble) bool { return o.Kind == x.Kind && o.Component == x.Component }
		if at := slices.IndexFunc(r.Troubles, same); at >= 0 {
			if x.At.After(r.Troubles[at].At) {
				r.Troubles[at] = *x
			}
			return
		}
	}
	r.Troubles = append(r.Troubles, *x)
}

// before adds what others have done for a task.
func (t *Task) before(o *Task) {
	p := t.Past
	if p == nil {
		p = &Past{}
		t.Past = p
	}
	did := o.Counts
	did.Open, did.Queued, did.Held = 0, 0, 0
	p.Counts.add(&did)
	for i, n := range o.Executed {
		if i == len(p.Executed) {
			p.Executed = append(p.Executed, 0)
		}
		p.Executed[i] += n
	}
	for _, x := range o.Own {
		if x.Kind != "gauge" {
			p.Own = added(p.Own, &x)
		}
	}
}
