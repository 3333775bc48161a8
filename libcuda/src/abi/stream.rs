//! Streams and events: everything is done when a call returns, so there is nothing to wait for.

use super::context::current;
use super::{Answer, answer, put};
use crate::code::{Code, Failure};
use crate::state::Object;
use crate::state::shared as with;
use std::ffi::{c_int, c_uint};

/// Whether the stream is one.
pub(super) fn check(stream: u64) -> Result<(), Failure> {
    current()?;
    with(|state| state.check_stream(stream))
}

/// Whether the event is one.
fn check_event(event: u64) -> Result<(), Failure> {
    with(|state| state.check_event(event))
}

/// What has gone wrong before.
fn alive() -> Result<(), Failure> {
    with(|state| state.alive().map(|_| ()))
}

unsafe fn make(to: *mut u64, object: Object) -> Result<(), Failure> {
    current()?;
    let made = with(|state| Ok(state.add(object)))?;
    // SAFETY: the driver's contract: a handle may be written there.
    unsafe { put(to, made) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreate(to: *mut u64, _flags: c_uint) -> Answer {
    // SAFETY: the caller's address is passed on.
    answer("cuStreamCreate", || unsafe { make(to, Object::Stream) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreateWithPriority(to: *mut u64, _flags: c_uint, _priority: c_int) -> Answer {
    // SAFETY: as above.
    answer("cuStreamCreateWithPriority", || unsafe { make(to, Object::Stream) })
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamDestroy_v2(stream: u64) -> Answer {
    answer("cuStreamDestroy", || with(|state| state.remove(stream, |object| matches!(object, Object::Stream))))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamSynchronize(stream: u64) -> Answer {
    answer("cuStreamSynchronize", || check(stream).and_then(|()| alive()))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamQuery(stream: u64) -> Answer {
    answer("cuStreamQuery", || check(stream).and_then(|()| alive()))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamWaitEvent(stream: u64, event: u64, _flags: c_uint) -> Answer {
    answer("cuStreamWaitEvent", || check(stream).and_then(|()| check_event(event)))
}

/// No stream is being captured: 0.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamIsCapturing(stream: u64, status: *mut c_int) -> Answer {
    // SAFETY: as above.
    answer("cuStreamIsCapturing", || check(stream).and_then(|()| unsafe { put(status, 0) }))
}

/// Graphs are refused where they begin. The other functions are there because hosts look all of them up.
fn no_graphs(call: &str) -> Answer {
    answer(call, || Err(Failure::new(Code::NotSupported, "the simulator has no graphs")))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamBeginCapture_v2(_stream: u64, _mode: c_int) -> Answer {
    no_graphs("cuStreamBeginCapture")
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamEndCapture(_stream: u64, _graph: *mut u64) -> Answer {
    no_graphs("cuStreamEndCapture")
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphInstantiateWithFlags(_to: *mut u64, _graph: u64, _flags: u64) -> Answer {
    no_graphs("cuGraphInstantiate")
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphUpload(_graph: u64, _stream: u64) -> Answer {
    no_graphs("cuGraphUpload")
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphLaunch(_graph: u64, _stream: u64) -> Answer {
    no_graphs("cuGraphLaunch")
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphExecDestroy(_graph: u64) -> Answer {
    no_graphs("cuGraphExecDestroy")
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphDestroy(_graph: u64) -> Answer {
    no_graphs("cuGraphDestroy")
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventCreate(to: *mut u64, _flags: c_uint) -> Answer {
    // SAFETY: as above.
    answer("cuEventCreate", || unsafe { make(to, Object::Event) })
}

#[unsafe(no_mangle)]
extern "C" fn cuEventDestroy_v2(event: u64) -> Answer {
    answer("cuEventDestroy", || with(|state| state.remove(event, |object| matches!(object, Object::Event))))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventRecord(event: u64, stream: u64) -> Answer {
    answer("cuEventRecord", || check(stream).and_then(|()| check_event(event)))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventSynchronize(event: u64) -> Answer {
    answer("cuEventSynchronize", || check_event(event).and_then(|()| alive()))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventQuery(event: u64) -> Answer {
    answer("cuEventQuery", || check_event(event).and_then(|()| alive()))
}

/// There is no time of the simulator that would be one of a GPU.
fn no_clock() -> Answer {
    answer("cuEventElapsedTime", || Err(Failure::new(Code::NotSupported, "the simulator has no clock")))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventElapsedTime(_to: *mut f32, _from: u64, _until: u64) -> Answer {
    no_clock()
}

/// What CUDA 13 calls it.
#[unsafe(no_mangle)]
extern "C" fn cuEventElapsedTime_v2(_to: *mut f32, _from: u64, _until: u64) -> Answer {
    no_clock()
}
