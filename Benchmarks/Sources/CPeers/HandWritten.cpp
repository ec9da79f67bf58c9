#include "Dungeon.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>

// The archive's layout (docs/FORMAT.md) for this one world, as one would write it by hand: fields straight to memory,
// numbers of objects kept in the objects, the schema a constant. It leaves out what only a general encoder needs.

namespace {

constexpr uint8_t magic[8] = {0x8B, 0x4B, 0x45, 0x45, 0x50, 0x0D, 0x0A, 0x1A};
constexpr size_t header_bytes = 16;
constexpr size_t trailer_bytes = 16;
constexpr size_t varint_bytes = 9;
constexpr int least_item_bytes = 3;

// MARK: Checksum

constexpr uint64_t prime1 = 0x9E3779B185EBCA87, prime2 = 0xC2B2AE3D27D4EB4F, prime3 = 0x165667B19E3779F9,
                   prime4 = 0x85EBCA77C2B2AE63, prime5 = 0x27D4EB2F165667C5;

template <typename T> inline T load(const uint8_t *p) {
  T value;
  memcpy(&value, p, sizeof value);
  return value;
}

inline uint64_t rotate(uint64_t value, int bits) { return value << bits | value >> (64 - bits); }
inline uint64_t mix(uint64_t lane, uint64_t input) { return rotate(lane + input * prime2, 31) * prime1; }

uint64_t xxh64(const uint8_t *p, size_t count) {
  const uint8_t *end = p + count;
  uint64_t hash;
  if (count >= 32) {
    uint64_t a = prime1 + prime2, b = prime2, c = 0, d = 0 - prime1;
    for (; p + 32 <= end; p += 32) {
      a = mix(a, load<uint64_t>(p));
      b = mix(b, load<uint64_t>(p + 8));
      c = mix(c, load<uint64_t>(p + 16));
      d = mix(d, load<uint64_t>(p + 24));
    }
    hash = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18);
    for (uint64_t lane : {a, b, c, d}) hash = (hash ^ mix(0, lane)) * prime1 + prime4;
  } else {
    hash = prime5;
  }
  hash += count;
  for (; p + 8 <= end; p += 8) hash = rotate(hash ^ mix(0, load<uint64_t>(p)), 27) * prime1 + prime4;
  if (p + 4 <= end) {
    hash = rotate(hash ^ load<uint32_t>(p) * prime1, 23) * prime2 + prime3;
    p += 4;
  }
  for (; p < end; p++) hash = rotate(hash ^ *p * prime5, 11) * prime1;
  hash = (hash ^ hash >> 33) * prime2;
  hash = (hash ^ hash >> 29) * prime3;
  return hash ^ hash >> 32;
}

// MARK: Writing

inline uint8_t *put(uint8_t *p, uint64_t value) {
  if (value < 128) {
    *p = static_cast<uint8_t>(value << 1 | 1);
    return p + 1;
  }
  int bytes = (70 - __builtin_clzll(value)) / 7;
  if (bytes > 8) {
    *p = 0;
    memcpy(p + 1, &value, 8);
    return p + 9;
  }
  uint64_t marked = value << bytes | 1ull << (bytes - 1);
  memcpy(p, &marked, 8);
  return p + bytes;
}

inline uint64_t zigzag(int64_t value) { return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63); }

/// A whole count of thousandths as that count, anything else in full.
inline uint8_t *put_double(uint8_t *p, double number) {
  if (std::fabs(number) < 0x1p37) {
    const auto count = static_cast<int64_t>(number * 1000 + (number < 0 ? -0.5 : 0.5));
    const double back = static_cast<double>(count) / 1000;
    if (memcmp(&back, &number, 8) == 0) return put(p, zigzag(count) << 1);
  }
  p = put(p, 1);
  memcpy(p, &number, 8);
  return p + 8;
}

inline uint8_t *put(uint8_t *p, const std::string &text) {
  p = put(p, text.size());
  memcpy(p, text.data(), text.size());
  return p + text.size();
}

struct Output {
  uint8_t *start;
  size_t capacity;

  explicit Output(size_t capacity) : start(static_cast<uint8_t *>(malloc(capacity))), capacity(capacity) {}

  /// The same place with room for `more` bytes behind it.
  uint8_t *room(uint8_t *p, size_t more) {
    size_t used = static_cast<size_t>(p - start);
    if (used + more <= capacity) return p;
    capacity = capacity * 2 + more;
    start = static_cast<uint8_t *>(realloc(start, capacity));
    return start + used;
  }
};

uint8_t *encode(CDungeon *dungeon, const uint8_t *schema, size_t schema_bytes, size_t *count) {
  const auto &heroes = dungeon->heroes;
  const size_t item_bytes = 3 * varint_bytes, margin = 8 * varint_bytes + 8 + trailer_bytes;
  Output output(heroes.size() * 64 + schema_bytes + dungeon->name.size() + header_bytes + margin);
  uint8_t *p = output.start;
  memcpy(p, magic, sizeof magic);
  const uint16_t version = 1;
  memcpy(p + 8, &version, 2);
  memset(p + 10, 0, 6);
  p = output.room(p + header_bytes, dungeon->name.size() + heroes.size() * varint_bytes + margin);
  p = put(p, zigzag(dungeon->level));
  p = put(p, dungeon->name);
  p = put(p, heroes.size());
  uint32_t number = 0;
  for (const auto &hero : heroes) {
    hero->number = number++;
    p = put(p, number);
  }
  const size_t root = static_cast<size_t>(p - output.start) - header_bytes;

  std::unique_ptr<uint8_t[]> references(new uint8_t[heroes.size() * varint_bytes + 8]);
  uint8_t *r = references.get();
  for (const auto &pointer : heroes) {
    const Hero &hero = *pointer;
    p = output.room(p, hero.name.size() + hero.inventory.size() * item_bytes + margin);
    p = put(p, zigzag(hero.type));
    p = put(p, hero.name);
    memcpy(p, &hero.x, 4);
    memcpy(p + 4, &hero.y, 4);
    p = put(p + 8, zigzag(hero.health));
    p = put(p, hero.inventory.size());
    for (const Item &item : hero.inventory) {
      p = put(p, zigzag(item.kind));
      p = put(p, zigzag(item.count));
      p = put_double(p, item.durability);
    }
    r = put(r, hero.target ? hero.target->number + 1 : 0);
  }
  const size_t objects = static_cast<size_t>(p - output.start) - header_bytes - root;
  const size_t reference_bytes = static_cast<size_t>(r - references.get());

  p = output.room(p, reference_bytes + schema_bytes + margin);
  memcpy(p, references.get(), reference_bytes);
  p += reference_bytes;
  const uint64_t footer = static_cast<uint64_t>(p - output.start);
  memcpy(p, schema, schema_bytes);
  p += schema_bytes;
  for (size_t length : {root, objects, reference_bytes}) p = put(p, length);
  p = put(p, heroes.size());
  p = put(p, heroes.empty() ? 0 : 1);
  if (!heroes.empty()) {
    p = put(p, 1); // Hero is the second type of the schema.
    p = put(p, heroes.size());
    *p++ = 0;
    p = put(p, 0);
  }
  memcpy(p, &footer, 8);
  p += 8;
  const uint64_t sum = xxh64(output.start, static_cast<size_t>(p - output.start));
  memcpy(p, &sum, 8);
  p += 8;
  *count = static_cast<size_t>(p - output.start);
  return output.start;
}

// MARK: Reading

/// Reads ahead of what it needs: behind every section stand at least the 16 bytes of the trailer.
inline uint64_t take(const uint8_t *&p) {
  const uint8_t first = *p;
  if (first & 1) {
    p++;
    return first >> 1;
  }
  if (!first) {
    p += 9;
    return load<uint64_t>(p - 8);
  }
  const int bytes = __builtin_ctz(first) + 1;
  const uint64_t value = load<uint64_t>(p) << (64 - 8 * bytes) >> (64 - 7 * bytes);
  p += bytes;
  return value;
}

inline int64_t take_signed(const uint8_t *&p) {
  const uint64_t value = take(p);
  return static_cast<int64_t>(value >> 1 ^ (0 - (value & 1)));
}

/// Not a number for a form that isn't known.
inline double take_double(const uint8_t *&p) {
  const uint64_t value = take(p);
  if (value & 1) {
    if (value != 1) return std::nan("");
    p += 8;
    return load<double>(p - 8);
  }
  return static_cast<double>(static_cast<int64_t>(value >> 2 ^ (0 - (value >> 1 & 1)))) / 1000;
}

inline bool take_text(const uint8_t *&p, const uint8_t *end, std::string &text) {
  const uint64_t length = take(p);
  if (p > end || length > static_cast<uint64_t>(end - p)) return false;
  text.assign(reinterpret_cast<const char *>(p), length);
  p += length;
  return true;
}

CDungeon *decode(const uint8_t *bytes, size_t count, const uint8_t *schema, size_t schema_bytes) {
  if (count < header_bytes + trailer_bytes || memcmp(bytes, magic, sizeof magic) != 0) return nullptr;
  if (xxh64(bytes, count - 8) != load<uint64_t>(bytes + count - 8)) return nullptr;
  const uint64_t footer = load<uint64_t>(bytes + count - trailer_bytes);
  const size_t body_end = count - trailer_bytes;
  if (footer > body_end || body_end - footer < schema_bytes + 5 || memcmp(bytes + footer, schema, schema_bytes) != 0)
    return nullptr;
  const uint8_t *f = bytes + footer + schema_bytes;
  const uint64_t root = take(f), objects = take(f), references = take(f);
  const uint64_t all = footer - header_bytes;
  if (root > all || objects > all - root || references != all - root - objects) return nullptr;
  const uint8_t *p = bytes + header_bytes, *end = p + root;

  auto dungeon = std::make_unique<CDungeon>();
  dungeon->level = take_signed(p);
  if (!take_text(p, end, dungeon->name)) return nullptr;
  const uint64_t number = take(p);
  if (p > end || number > static_cast<uint64_t>(end - p)) return nullptr;

  p = bytes + header_bytes + root;
  end = p + objects;
  auto &heroes = dungeon->heroes;
  heroes.reserve(number);
  for (uint32_t index = 0; index < number; index++) {
    auto hero = std::make_unique<Hero>();
    hero->number = index;
    hero->type = take_signed(p);
    if (!take_text(p, end, hero->name)) return nullptr;
    hero->x = load<float>(p);
    hero->y = load<float>(p + 4);
    p += 8;
    hero->health = take_signed(p);
    const uint64_t items = take(p);
    if (p > end || items > static_cast<uint64_t>(end - p) / least_item_bytes) return nullptr;
    hero->inventory.resize(items);
    for (Item &item : hero->inventory) {
      if (end - p < least_item_bytes) return nullptr;
      item.kind = static_cast<int32_t>(take_signed(p));
      item.count = take_signed(p);
      item.durability = take_double(p);
    }
    if (p > end) return nullptr;
    heroes.push_back(std::move(hero));
  }

  end = p + references;
  for (auto &hero : heroes) {
    if (p >= end) return nullptr;
    const uint64_t reference = take(p);
    if (reference > number) return nullptr;
    if (reference) hero->target = heroes[reference - 1].get();
  }
  return p == end ? dungeon.release() : nullptr;
}

} // namespace

const DungeonPeer *hand_written_peer(void) {
  static const DungeonPeer peer = {make_dungeon, add_hero, add_item, encode, decode, equal_dungeons, release_dungeon};
  return &peer;
}
