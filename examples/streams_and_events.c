/* streams_and_events.c: work on a second stream, timed by two events; then work that is recorded and launched twice.
 * Streams are ordered by the data they share: nothing here has to wait by hand. */
#include <paracord.h>

static bool time_product(pc_device dev, pc_stream *side)
{
    bool fine = false;
    pc_stream *before = pc_stream_current(dev);
    pc_event *start = pc_event_new(dev), *end = pc_event_new(dev);
    PC_SCOPE {
        pc_tensor *a = pc_rand(PC_SHAPE(512, 512), PC_F32, dev);
        fine = start && end && pc_stream_set_current(dev, side) == PC_OK && pc_event_record(start, side) == PC_OK;
        pc_tensor *product = pc_matmul(a, a); /* on the side stream, once a is there */
        fine = fine && pc_event_record(end, side) == PC_OK && pc_stream_set_current(dev, before) == PC_OK;

        double ms = 0;
        if (fine && pc_event_elapsed(start, end, &ms) == PC_OK)
            printf("the product took %.3f ms, its mean is %.1f\n", ms, pc_item(pc_mean(product)));
    }
    pc_event_free(end);
    pc_event_free(start);
    return fine;
}

static bool launch_twice(pc_stream *stream, pc_device dev)
{
    bool fine = false;
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(4), PC_F32, dev), *y = pc_zeros(PC_SHAPE(4), PC_F32, dev);
        if (pc_graph_begin(stream) != PC_OK)
            break;                          /* out of the scope */
        fine = pc_saxpy(y, 10, x) == PC_OK; /* y += 10 x, at each launch */
        pc_graph *graph = pc_graph_end(stream);
        fine = fine && pc_graph_launch(graph, NULL) == PC_OK && pc_graph_launch(graph, NULL) == PC_OK;
        pc_print(y);
        pc_graph_free(graph);
    }
    return fine;
}

int main(void)
{
    pc_device dev = pc_device_pick("auto");
    pc_stream *side = pc_stream_new(dev);
    if (side && time_product(dev, side) && launch_twice(pc_stream_current(dev), dev))
        puts("done");
    pc_stream_free(side);
    return pc_failed() ? pc_report(stderr) : 0;
}
