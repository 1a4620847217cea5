/* graph.cpp: graphs of the emulated runtime. Launches go through a graph in two orders by turns, both of which its
 * edges allow: as it was captured, and with what was captured last as early as it may be. So work whose edges do not
 * say what it needs does not go unnoticed. */
#include "graph.h"

#include "ahead.h"
#include "device.h"

#include <vector>

struct node {
    std::function<void()> work;
    std::set<size_t> behind;
    bool early;
};

struct CUgraph_st {
    std::vector<node> nodes;
    std::vector<cudaStream_t> streams; /* that are captured, the one that it began on first */
};
struct CUgraphExec_st {
    std::vector<node> captured;
    std::vector<std::function<void()>> reordered;
    unsigned launches = 0;
};

namespace
{

/* All that is done when these are. */
std::set<size_t> all_before(const CUgraph_st &graph, std::set<size_t> some)
{
    for (size_t i = graph.nodes.size(); i-- > 0;)
        if (some.count(i))
            some.insert(graph.nodes[i].behind.begin(), graph.nodes[i].behind.end());
    return some;
}

bool may_go(const node &n, const std::vector<bool> &gone)
{
    for (size_t i : n.behind)
        if (!gone[i])
            return false;
    return true;
}

std::vector<std::function<void()>> last_ones_early(const CUgraph_st &graph)
{
    std::vector<std::function<void()>> order;
    std::vector<bool> gone(graph.nodes.size(), false);
    while (order.size() < graph.nodes.size()) {
        size_t i = graph.nodes.size() - 1;
        while (gone[i] || !may_go(graph.nodes[i], gone))
            i--;
        gone[i] = true;
        order.push_back(graph.nodes[i].work);
    }
    return order;
}

/* Kernels that may start early look at what they read ahead when the one in front of them has not begun. */
void launch_as_captured(const std::vector<node> &nodes)
{
    std::vector<std::vector<emulator::seen>> seen(nodes.size());
    for (size_t i = 0; i < nodes.size(); i++) {
        for (size_t k = i + 1; k < nodes.size(); k++)
            if (nodes[k].early && *nodes[k].behind.begin() == i)
                seen[k] = emulator::look_ahead(nodes[k].work);
        emulator::still_there(seen[i]);
        nodes[i].work();
    }
}

} // namespace

void emulator::capture_work(capture &at, std::function<void()> work, bool early)
{
    std::vector<node> &nodes = at.graph->nodes;
    nodes.push_back({std::move(work), at.behind, early && at.behind.size() == 1});
    at.behind = {nodes.size() - 1};
}

cudaError_t emulator::capture_waits(cudaStream_t queue, const capture &event)
{
    capture &own = queue->capture;
    if (own.graph != event.graph && own.graph)
        return event.graph ? cudaErrorStreamCaptureMerge : cudaErrorStreamCaptureIsolation;
    if (own.graph != event.graph) {
        own.graph = event.graph;
        own.graph->streams.push_back(queue);
    }
    own.behind.insert(event.behind.begin(), event.behind.end());
    return cudaSuccess;
}

void emulator::capture_forgets(cudaStream_t queue)
{
    if (!queue->capture.graph)
        return;
    std::vector<cudaStream_t> &streams = queue->capture.graph->streams;
    for (size_t i = streams.size(); i-- > 0;)
        if (streams[i] == queue)
            streams.erase(streams.begin() + static_cast<std::ptrdiff_t>(i));
}

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t queue, cudaStreamCaptureMode)
{
    queue->capture = {new CUgraph_st, {}};
    queue->capture.graph->streams = {queue};
    return cudaSuccess;
}

/* Of all that was captured the stream must have waited for the last. */
cudaError_t cudaStreamEndCapture(cudaStream_t queue, cudaGraph_t *graph)
{
    CUgraph_st *g = queue->capture.graph;
    const size_t joined = all_before(*g, queue->capture.behind).size();
    for (cudaStream_t stream : g->streams)
        stream->capture = {};
    *graph = joined == g->nodes.size() ? g : nullptr;
    if (*graph)
        return cudaSuccess;
    delete g;
    return emulator::told(cudaErrorStreamCaptureUnjoined);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long)
{
    *made = new CUgraphExec_st;
    (*made)->captured = graph->nodes;
    (*made)->reordered = last_ones_early(*graph);
    return cudaSuccess;
}
/* No library is there that fills memory, so nobody sees or changes nodes. */
cudaError_t cudaGraphGetNodes(cudaGraph_t, cudaGraphNode_t *, size_t *count)
{
    *count = 0;
    return cudaSuccess;
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t, enum cudaGraphNodeType *)
{
    return cudaErrorNotSupported;
}
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t, struct cudaMemsetParams *)
{
    return cudaErrorNotSupported;
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t, cudaGraphNode_t *, cudaGraphEdgeData *, size_t *)
{
    return cudaErrorNotSupported;
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t, cudaGraphNode_t *, cudaGraphEdgeData *, size_t *)
{
    return cudaErrorNotSupported;
}
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *, cudaGraph_t, const cudaGraphNode_t *, size_t,
                                   const struct cudaKernelNodeParams *)
{
    return cudaErrorNotSupported;
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t *, const cudaGraphNode_t *,
                                     const cudaGraphEdgeData *, size_t)
{
    return cudaErrorNotSupported;
}
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t)
{
    return cudaErrorNotSupported;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t)
{
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t)
{
    if (graph->launches++ % 2 == 0)
        launch_as_captured(graph->captured);
    else
        for (const std::function<void()> &work : graph->reordered)
            work();
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
    delete graph;
    return cudaSuccess;
}
}
