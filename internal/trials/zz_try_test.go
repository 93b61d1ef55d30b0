package trials
import ("testing";"time";"fmt";"context";"os";"github.com/anteroom/anteroom/simtest")
func TestTry(t *testing.T) {
	c, _ := CellNamed(os.Getenv("CELL"))
	a := Algorithm(os.Getenv("ALGO"))
	s := NewSample(cellMetrics())
	b := Batch{Runs: 10, Workers: 1, Now: time.Now, Options: func(i int) simtest.Options { return ThesisOptions(c, a, uint64(i+1)) }}
	b.Run(context.Background(), func(o *Outcome) { s.Add(o) })
	fmt.Println(c, a, s.Wall/10, s.Failed)
}
