//! Tests of pools and frames.

use super::*;

fn filled(pool: &mut Pool, byte: u8) -> Frame {
    let mut frame = pool.take().unwrap();
    assert!(frame.push(&[byte; 10]));
    frame
}

#[test]
fn pool_gives_each_frame_once_and_no_more_than_it_has() {
    let mut pool = Pool::new(3, 256).unwrap();
    let frames: Vec<_> = (0..3).map(|byte| filled(&mut pool, byte)).collect();
    assert!(pool.take().is_none());
    for (byte, frame) in (0..).zip(&frames) {
        assert_eq!(frame.bytes(), [byte; 10]);
    }
    let mut frames = frames.into_iter();
    pool.put(frames.next().unwrap());
    drop(frames);
    let again: Vec<_> = (0..3).map(|_| pool.take().unwrap()).collect();
    assert!(pool.take().is_none());
    assert!(again.iter().all(Frame::is_empty));
}

#[test]
fn frames_outlive_their_pool_and_end_on_other_threads() {
    for dropped_before in 0..=3 {
        let mut pool = Pool::new(4, 256).unwrap();
        let mut frames: Vec<_> = (0..4).map(|byte| filled(&mut pool, byte)).collect();
        frames.truncate(4 - dropped_before);
        let thread = std::thread::spawn(move || {
            let bytes = frames.iter().flat_map(Frame::bytes);
            bytes.map(|byte| usize::from(*byte)).sum::<usize>()
        });
        drop(pool);
        let all: usize = (0..4 - dropped_before).map(|byte| byte * 10).sum();
        assert_eq!(thread.join().unwrap(), all);
    }
}

#[test]
fn frames_come_back_from_another_thread_while_the_pool_takes_some() {
    let mut pool = Pool::new(8, 64).unwrap();
    let (send, receive) = std::sync::mpsc::channel::<Frame>();
    let thread = std::thread::spawn(move || receive.into_iter().map(drop).count());
    let mut sent = 0;
    while sent < 500 {
        if let Some(frame) = pool.take() {
            send.send(frame).unwrap();
            sent += 1;
        }
    }
    drop(send);
    assert_eq!(thread.join().unwrap(), 500);
    let all: Vec<_> = (0..9).map_while(|_| pool.take()).collect();
    assert_eq!(all.len(), 8);
}

#[test]
fn frames_are_taken_to_a_list_until_none_is_free() {
    let (mut pool, mut frames) = (Pool::new(2, 256).unwrap(), vec![Frame::of(b"other")]);
    for byte in [1, 2] {
        assert!(pool.take_to(&mut frames).unwrap().push(&[byte]));
    }
    assert!(pool.take_to(&mut frames).is_none());
    let bytes: Vec<&[u8]> = frames.iter().map(Frame::bytes).collect();
    assert_eq!(bytes, [&b"other"[..], &[1], &[2]]);
    frames.clear();
    assert!(pool.take_to(&mut frames).is_some_and(|frame| frame.is_empty()));
}

#[test]
fn frame_of_another_pool_does_not_get_into_this_one() {
    let (mut one, mut other) = (Pool::new(1, 64).unwrap(), Pool::new(1, 64).unwrap());
    let frame = one.take().unwrap();
    let theirs = other.take().unwrap();
    one.put(theirs);
    assert!(one.take().is_none());
    assert!(other.take().is_some());
    drop(frame);
}

/// 300 bytes, and the number of times that they were freed.
struct Lent(NonNull<[u8]>, std::sync::Arc<AtomicU32>);

// SAFETY: the bytes are initialised, and this value alone owns them.
unsafe impl Region for Lent {
    fn memory(&self) -> NonNull<[u8]> {
        self.0
    }
}

// SAFETY: the memory belongs to no thread.
unsafe impl Send for Lent {}

impl Drop for Lent {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the test took the memory out of a box.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

#[test]
fn region_ends_once_with_the_last_of_the_pool_and_its_frames() {
    for is_frame_last in [false, true] {
        let ended = std::sync::Arc::new(AtomicU32::new(0));
        let bytes: Box<[u8]> = vec![7; 300].into();
        let region = Lent(NonNull::from(Box::leak(bytes)), ended.clone());
        let mut pool = Pool::in_region(Box::new(region), 100);
        let mut frames: Vec<_> = (0..3).map(|_| pool.take().unwrap()).collect();
        assert!(pool.take().is_none());
        frames[2].place(0, 100);
        assert_eq!(frames[2].bytes(), [7; 100]);
        if is_frame_last {
            drop(pool);
            frames.truncate(1);
            assert_eq!(ended.load(Ordering::Relaxed), 0);
            drop(frames);
        } else {
            drop(frames);
            assert_eq!(ended.load(Ordering::Relaxed), 0);
            drop(pool);
        }
        assert_eq!(ended.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn frames_have_numbers_in_their_pool_only() {
    let (mut one, other) = (Pool::new(3, 64).unwrap(), Pool::new(1, 64).unwrap());
    let mut frames: Vec<_> = (0..3).map(|_| one.take().unwrap()).collect();
    let (base, length) = one.memory();
    assert_eq!(length, 192);
    for frame in &mut frames {
        frame.place(10, 100);
        assert_eq!((frame.start(), frame.len()), (10, 54));
        let index = one.index(frame).unwrap() as usize;
        assert_eq!(frame.bytes().as_ptr().addr(), base.addr().get() + index * 64 + 10);
        assert_eq!(other.index(frame), None);
    }
    assert_eq!(one.index(&Frame::of(&[1])), None);
    frames[0].place(100, 1);
    assert_eq!((frames[0].start(), frames[0].len()), (64, 0));
}

#[test]
fn gaps_open_and_close_anywhere() {
    let bytes: Vec<u8> = (0..20).collect();
    let mut pool = Pool::new(1, HEADROOM + 20).unwrap();
    for at in 0..=20 {
        for more in [0, 4, 192, 200] {
            let mut frame = pool.take().unwrap();
            assert!(frame.push(&bytes) && !frame.push(&[0]));
            assert!(frame.open(at, more));
            frame.bytes_mut()[at..at + more].fill(99);
            let expected = [&bytes[..at], &vec![99; more], &bytes[at..]].concat();
            assert_eq!(frame.bytes(), expected);
            let own = frame.clone();
            assert!(frame.close(at, more));
            assert_eq!(frame.bytes(), bytes);
            assert_eq!(own.bytes(), expected);
            assert!(!frame.open(21, 1) && !frame.close(20, 1) && !frame.close(1, usize::MAX));
        }
    }
}

#[test]
fn frame_without_memory_takes_bytes_by_a_gap_only() {
    let mut frame = Frame::empty();
    assert!(!frame.push(&[1]) && frame.push(&[]));
    assert!(frame.open(0, 2));
    frame.bytes_mut().copy_from_slice(&[1, 2]);
    assert_eq!(frame.bytes(), [1, 2]);
    assert_eq!(Frame::of(&[]).bytes(), [0; 0]);
}
