//! CUDA graphs: a queue of launches recorded once and started with one call, without the gaps of single launches.

use super::Stream;
use crate::cuda::context::{Context, CudaError};
use cudarc::driver::sys;
use std::sync::Arc;

/// Recorded work, ready to be launched any number of times.
pub struct Graph {
    context: Arc<Context>,
    exec: sys::CUgraphExec,
}

impl Stream {
    /// Records what `work` queues on this stream instead of running it. The functions, buffers and libraries that it uses
    /// must outlive the launches of the graph; a freed buffer makes a launch fault on the device.
    ///
    /// # Errors
    /// The default stream cannot be recorded; `work` fails, or queues something that cannot be recorded.
    pub fn capture(&self, work: impl FnOnce(&Stream) -> Result<(), CudaError>) -> Result<Graph, CudaError> {
        if self.handle().is_null() {
            return Err(CudaError::refused("the default stream cannot be captured"));
        }
        // Libraries that load code on their first call may do so while a relaxed capture runs.
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        self.context().with(|api| {
            // SAFETY: the stream is alive.
            api.check("cuStreamBeginCapture", unsafe { (api.cuStreamBeginCapture_v2)(self.handle(), mode) })
        })?;
        let queued = work(self);
        let mut graph = std::ptr::null_mut();
        let ended = self.context().with(|api| {
            // SAFETY: `graph` is a valid place for a handle; the capture began above.
            api.check("cuStreamEndCapture", unsafe { (api.cuStreamEndCapture)(self.handle(), &mut graph) })
        });
        let mut made = Graph { context: Arc::clone(self.context()), exec: std::ptr::null_mut() };
        let result = queued.and(ended).and_then(|()| {
            made.context.with(|api| {
                // SAFETY: `exec` is a valid place for a handle; the graph came out of the capture.
                let code = unsafe { (api.cuGraphInstantiateWithFlags)(&mut made.exec, graph, 0) };
                api.check("cuGraphInstantiate", code)
            })
        });
        if !graph.is_null() {
            // SAFETY: made once, destroyed once; the executable graph is independent of it.
            let _ = made.context.with(|api| api.check("cuGraphDestroy", unsafe { (api.cuGraphDestroy)(graph) }));
        }
        result.map(|()| made)
    }
}

// SAFETY: a handle of the driver, which may be used from any thread and from several: see [`Context`].
unsafe impl Send for Graph {}
// SAFETY: as above.
unsafe impl Sync for Graph {}

impl Graph {
    /// Moves what a launch needs to the device, so that the first launch is as fast as the next.
    pub fn upload(&self, stream: &Stream) -> Result<(), CudaError> {
        // SAFETY: graph and stream are alive.
        self.context.with(|api| api.check("cuGraphUpload", unsafe { (api.cuGraphUpload)(self.exec, stream.handle()) }))
    }

    /// Queues all of the recorded work.
    pub fn launch(&self, stream: &Stream) -> Result<(), CudaError> {
        // SAFETY: graph and stream are alive.
        self.context.with(|api| api.check("cuGraphLaunch", unsafe { (api.cuGraphLaunch)(self.exec, stream.handle()) }))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if !self.exec.is_null() {
            // SAFETY: made once, destroyed once; the driver lets queued work finish.
            let _ = self
                .context
                .with(|api| api.check("cuGraphExecDestroy", unsafe { (api.cuGraphExecDestroy)(self.exec) }));
        }
    }
}
