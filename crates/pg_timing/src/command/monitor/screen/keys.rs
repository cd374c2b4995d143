//! The keys of the screen.

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Quit,
    Help,
    CloseHelp,
    Pause,
    Sort,
    Older,
    Newer,
    PageOlder,
    PageNewer,
    Suspend,
}

/// Returns what a key does. The newest event is at the top, so `down` shows older ones.
pub fn action(event: Event) -> Option<Action> {
    let Event::Key(KeyEvent { code, modifiers, kind, .. }) = event else { return None };
    if kind == KeyEventKind::Release {
        return None;
    }
    if modifiers.contains(KeyModifiers::CONTROL) {
        return match code {
            KeyCode::Char('c') => Some(Action::Quit),
            KeyCode::Char('z') => Some(Action::Suspend),
            _ => None,
        };
    }
    Some(match code {
        KeyCode::Char('q' | 'Q') => Action::Quit,
        KeyCode::Char('?' | 'h' | 'H') => Action::Help,
        KeyCode::Esc => Action::CloseHelp,
        KeyCode::Char('p' | 'P' | ' ') => Action::Pause,
        KeyCode::Char('s' | 'S') => Action::Sort,
        KeyCode::Down => Action::Older,
        KeyCode::Up => Action::Newer,
        KeyCode::PageDown => Action::PageOlder,
        KeyCode::PageUp => Action::PageNewer,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_actions() {
        let key = |code, modifiers| action(Event::Key(KeyEvent::new(code, modifiers)));
        let plain = |c| key(KeyCode::Char(c), KeyModifiers::NONE);
        let control = |c| key(KeyCode::Char(c), KeyModifiers::CONTROL);
        use Action::*;
        assert_eq!(['q', '?', 'h', 'p', ' ', 's'].map(plain), [Quit, Help, Help, Pause, Pause, Sort].map(Some));
        assert_eq!(plain('x'), None);
        assert_eq!(['c', 'z', 'q'].map(control), [Some(Quit), Some(Suspend), None]);
        assert_eq!(key(KeyCode::Down, KeyModifiers::NONE), Some(Older));
    }

    #[test]
    fn a_released_key_and_a_resize_do_nothing() {
        let released = KeyEvent::new_with_kind(KeyCode::Char('q'), KeyModifiers::NONE, KeyEventKind::Release);
        assert_eq!([Event::Key(released), Event::Resize(80, 24), Event::FocusLost].map(action), [None; 3]);
    }
}
