/// The locations of each object's bytes and the objects that they refer to, found by skipping through both sections of
/// objects.
struct ObjectLocations {
  /// By object number: the offset from the start of the archive.
  private(set) var values: [Int]
  private(set) var references: [Int]
  /// Numbers of the objects that are referred to, in the order in which they occur.
  private var targets: [Int32] = []
  private var valueTargets: [Range<Int>]
  private var referenceTargets: [Range<Int>]

  init(_ file: ArchiveFile, _ core: ReaderCore) throws {
    self.init(count: file.objectCount)
    try collect(file, core, withTargets: false)
  }

  private init(count: Int) {
    values = Array(repeating: 0, count: count)
    references = values
    valueTargets = []
    referenceTargets = []
  }

  /// Returns locations with the objects that each object refers to; if bytes are damaged, only what comes before the
  /// damage.
  static func withTargets(_ file: ArchiveFile, _ core: ReaderCore) -> ObjectLocations {
    var places = ObjectLocations(count: file.objectCount)
    places.valueTargets = Array(repeating: 0..<0, count: file.objectCount)
    places.referenceTargets = places.valueTargets
    do {
      try places.collect(file, core, withTargets: true)
    } catch {
      // Objects behind the damage were never built.
      return places
    }
    return places
  }

  /// Calls `body` with each object that this object's bytes refer to.
  func forEachTarget(of id: Int, _ body: (Int) -> Void) {
    for target in targets[valueTargets[id]] { body(Int(target)) }
    for target in targets[referenceTargets[id]] { body(Int(target)) }
  }

  private mutating func collect(_ file: ArchiveFile, _ core: ReaderCore, withTargets: Bool) throws {
    guard let base = file.bytes.baseAddress else { return }
    var reader = ArchiveReader(core: core, base: base, isExact: false)
    if withTargets { reader.passedReferences = [] }
    for isInReferences in [false, true] {
      let section = isInReferences ? file.referenceSection : file.valueSection
      reader.cursor = base + section.lowerBound
      reader.end = base + section.upperBound
      for run in file.runs {
        let entry = file.schema.types[run.type]
        let fields = entry.fields.filter { $0.deferred == isInReferences }
        for id in run.ids {
          if isInReferences { references[Int(id)] = reader.offset } else { values[Int(id)] = reader.offset }
          // Also for a damaged object, because the part before the damage may have been read.
          defer { recordTargets(of: Int(id), isInReferences, &reader) }
          try reader.skipObject(isKeyed: entry.kind.isKeyed, fields)
        }
      }
    }
  }

  private mutating func recordTargets(of id: Int, _ isInReferences: Bool, _ reader: inout ArchiveReader) {
    guard let met = reader.passedReferences, !met.isEmpty else { return }
    let range = targets.count..<targets.count + met.count
    targets += met
    reader.passedReferences = []
    if isInReferences { referenceTargets[id] = range } else { valueTargets[id] = range }
  }
}
