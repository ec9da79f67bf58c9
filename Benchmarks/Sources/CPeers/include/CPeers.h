#ifndef CPEERS_H
#define CPEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A dungeon as C++ objects.
typedef struct CDungeon CDungeon;

/// An encoder in C++, behind functions that Swift can call;
/// the same for those that are linked and those that are loaded.
typedef struct DungeonPeer {
  /// An empty dungeon with room for this many heroes.
  CDungeon *(*make)(int64_t level, const char *name, size_t name_bytes, size_t heroes);
  /// Appends a hero, whom `target` chases: an earlier hero's place, or -1.
  void (*add_hero)(CDungeon *dungeon, int64_t type, const char *name, size_t name_bytes, float x, float y,
                   int64_t health, int64_t target);
  /// Gives the newest hero an item.
  void (*add_item)(CDungeon *dungeon, int32_t kind, int64_t count, double durability);
  /// Writes into memory that `free` releases. `schema` is the constant part of the footer; not every peer has one.
  uint8_t *(*encode)(CDungeon *dungeon, const uint8_t *schema, size_t schema_bytes, size_t *count);
  /// NULL for bytes that it can't read.
  CDungeon *(*decode)(const uint8_t *bytes, size_t count, const uint8_t *schema, size_t schema_bytes);
  bool (*equal)(const CDungeon *one, const CDungeon *other);
  void (*release)(CDungeon *dungeon);
} DungeonPeer;

/// The archive's layout, written by hand.
const DungeonPeer *hand_written_peer(void);

/// Gives memory that was freed back to the system, where the C library can.
void return_unused_memory(void);

/// Whether large blocks of memory come from the system each time, with pages never touched, or are used again and
/// again. Left alone, the C library decides by what was freed before. Without effect where it can't be told.
void take_fresh_memory(bool fresh);

/// What the calling thread has spent on a processor so far, the system's work for it included.
uint64_t processor_nanoseconds(void);

#ifdef __cplusplus
}
#endif
#endif
