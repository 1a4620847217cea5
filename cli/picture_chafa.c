/* picture_chafa.c: a picture in a terminal by libchafa, which finds the letter that fits a piece of it best. The
 * library is opened when a picture is shown, and nothing of it is needed to build: its interface has been the same
 * since 1.6. */
#include <dlfcn.h>

#include "picture_show.h"

/* As in chafa-common.h, chafa-canvas-config.h, chafa-symbol-map.h. */
enum {
    MODE_TRUECOLOR = 0,
    MODE_INDEXED_256 = 1,
    PIXEL_RGB8 = 8,
    SYMBOLS = 1 << 0 | 1 << 3 | 1 << 7 /* spaces, blocks, quarters: sixths are boxes in most terminals' fonts */
};

typedef struct chafa {
    void *(*config_new)(void);
    void (*config_unref)(void *config);
    void (*set_geometry)(void *config, int width, int height);
    void (*set_canvas_mode)(void *config, int mode);
    void (*set_symbol_map)(void *config, const void *map);
    void *(*map_new)(void);
    void (*map_unref)(void *map);
    void (*map_add_by_tags)(void *map, int tags);
    void *(*canvas_new)(const void *config);
    void (*canvas_unref)(void *canvas);
    void (*draw)(void *canvas, int pixels, const uint8_t *from, int width, int height, int stride);
    struct text {
        char *letters;
        size_t length, room;
    } * (*print)(void *canvas, void *terminal);
    char *(*text_free)(struct text *text, int letters_too);
} chafa;

static bool open_chafa(chafa *c)
{
    const struct {
        void *slot;
        const char *name;
    } all[] = {{&c->config_new, "chafa_canvas_config_new"},
               {&c->config_unref, "chafa_canvas_config_unref"},
               {&c->set_geometry, "chafa_canvas_config_set_geometry"},
               {&c->set_canvas_mode, "chafa_canvas_config_set_canvas_mode"},
               {&c->set_symbol_map, "chafa_canvas_config_set_symbol_map"},
               {&c->map_new, "chafa_symbol_map_new"},
               {&c->map_unref, "chafa_symbol_map_unref"},
               {&c->map_add_by_tags, "chafa_symbol_map_add_by_tags"},
               {&c->canvas_new, "chafa_canvas_new"},
               {&c->canvas_unref, "chafa_canvas_unref"},
               {&c->draw, "chafa_canvas_draw_all_pixels"},
               {&c->print, "chafa_canvas_print"},
               {&c->text_free, "g_string_free"}}; /* GLib's, which libchafa brings */
    void *library = dlopen("libchafa.so.0", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library && i < sizeof all / sizeof *all; i++)
        if (!(*(void **)all[i].slot = dlsym(library, all[i].name))) {
            dlclose(library);
            return false;
        }
    return library != NULL;
}

bool cli_picture_chafa(FILE *out, const pc_image *picture, int columns, int rows, bool all_colours)
{
    chafa c;
    if (!open_chafa(&c))
        return false;
    void *config = c.config_new(), *map = c.map_new();
    c.map_add_by_tags(map, SYMBOLS);
    c.set_symbol_map(config, map);
    c.set_geometry(config, columns, rows);
    c.set_canvas_mode(config, all_colours ? MODE_TRUECOLOR : MODE_INDEXED_256);
    void *canvas = c.canvas_new(config);
    c.draw(canvas, PIXEL_RGB8, picture->pixels, picture->width, picture->height, 3 * picture->width);
    struct text *text = c.print(canvas, NULL);
    fwrite(text->letters, 1, text->length, out);
    fputs("\033[0m\n", out);
    c.text_free(text, 1);
    c.canvas_unref(canvas);
    c.config_unref(config);
    c.map_unref(map);
    return true; /* the library stays open: GLib cannot be unloaded */
}
