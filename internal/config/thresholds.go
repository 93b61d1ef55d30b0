package config

import "time"

// NotificationThresholds says from when on something is worth a notification.
type NotificationThresholds struct {
	Queueing     Duration `json:"queueing"`      // people wait that long
	Wait         Duration `json:"wait"`          // that who joins now is expected to; 0: never told
	LimitReached Duration `json:"limit_reached"` // a room is full that long
	SlotsMissing Duration `json:"slots_missing"`
	NodeLost     Duration `json:"node_lost"`
	MajorityLost Duration `json:"majority_lost"`
	ClockOff     Duration `json:"clock_off"`
	Certificate  Duration `json:"certificate"` // that it is good for yet; 0: never told
	Settle       Duration `json:"settle"`      // something is over that long until that is told
}

// DefaultNotificationThresholds returns those of an empty file.
func DefaultNotificationThresholds() NotificationThresholds {
	return NotificationThresholds{
		Queueing: Duration(10 * time.Second), Wait: Duration(30 * time.Minute), LimitReached: Duration(5 * time.Minute),
		SlotsMissing: Duration(time.Minute), NodeLost: Duration(15 * time.Second), MajorityLost: Duration(5 * time.Second),
		ClockOff: Duration(15 * time.Second), Certificate: Duration(14 * 24 * time.Hour), Settle: Duration(time.Minute),
	}
}

const thresholdMax = Duration(90 * 24 * time.Hour)

func (f *File) checkNotificationThresholds() {
	t := f.Config.NotificationThresholds
	for _, o := range []struct {
		key string
		is  Duration
	}{
		{"queueing", t.Queueing},
		{"wait", t.Wait},
		{"limit_reached", t.LimitReached},
		{"slots_missing", t.SlotsMissing},
		{"node_lost", t.NodeLost},
		{"majority_lost", t.MajorityLost},
		{"clock_off", t.ClockOff},
		{"certificate", t.Certificate},
		{"settle", t.Settle},
	} {
		if o.is < 0 || o.is > thresholdMax {
			f.fault("notification_thresholds."+o.key, "%v; give a time from 0s to %v", o.is, thresholdMax)
		}
	}
}
