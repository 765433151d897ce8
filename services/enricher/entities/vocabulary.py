"""The words that tell people and organisations: titles, roles, and what organisations are called, in many languages."""

from __future__ import annotations


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


TITLES = words_of(
    "President Minister Senator Governor Chancellor Mayor Judge Justice King Queen Prince Princess Pope Sir Dame"
    " Lord Lady Mr Mrs Ms Dr Prof Professor General Colonel Captain Secretary Ambassador Congressman CEO Coach"
    " Congresswoman Rep Sen Gov Gen Col Lt Sgt Rev Cardinal Archbishop Bishop Sheikh Imam Emir Sultan Präsident"
    " Präsidentin Bundeskanzler Kanzler Kanzlerin Ministerpräsident Außenminister Bundespräsident Président"
    " Presidente Ministro Ministra Президент Премьер Министр Prezydent Premier Başkan Cumhurbaşkanı"
)
LEGAL = words_of(
    "Inc Corp Ltd LLC plc PLC GmbH AG Corporation Incorporated Holdings Holding SpA SARL Oy Oyj AB ASA SE NV BV"
    " KGaA Limited LLP Pty Bhd Tbk"
)
LAST = LEGAL | words_of(
    "University College Institute Bank Group Party Council Committee Commission Agency Foundation Association"
    " Federation Airlines Airways Motors Energy Pharmaceuticals Technologies Ministry Department Authority Bureau"
    " Parliament Senate Assembly Court Congress Union Hospital Museum Library Orchestra FC Universität Institut"
    " Partei Verband Bundesamt Ministerium Universiteit Universitet Üniversitesi Bankası Partisi Bakanlığı"
    " Belediyesi Academy Alliance Archive Chamber Church Club Coalition Confederation Consortium Exchange Force"
    " Forces Forum Front Fund Initiative Laboratories Laboratory Labs League Movement Network Organisation"
    " Organization Partners Police Railways Securities Semiconductor Service Services Society Studios Systems"
    " Trust Tribunal Ventures Wanderers Rovers Tribune Herald Gazette Chronicle Rundfunk Stiftung Gesellschaft"
    " Gewerkschaft Universitesi Kurumu Derneği Vakfı Gericht Landgericht Klinikum Hogeschool Universitetet Banken"
    " Partiet Egyetem Univerzita Banka"
)
FIRST = words_of(
    "University Institute Bank Ministry Department Ministerio Ministère Ministero Ministério Universidad"
    " Université Università Universidade Banco Banque Banca Partido Parti Partito Institut Instituto Office"
    " Bureau Federation Association House Chamber Conseil Consejo Tribunal Cour Corte Istituto Council Commission"
    " Academy College Society Committee Court Comisión Junta Ayuntamiento Federación Asociación Confederación"
    " Fundación Agencia Secretaría Fiscalía Audiencia Cámara Academia Movimiento Sindicato Consejería Diputación"
    " Hospital Comité Conselho Comissão Federação Associação Fundação Agência Secretaria Câmara Prefeitura"
    " Confederação Fédération Fondation Agence Chambre Syndicat Hôpital Académie Autorité Confédération Consiglio"
    " Commissione Federazione Associazione Fondazione Agenzia Camera Tribunale Sindacato Procura Questura"
    " Ospedale Accademia Comitato Autorità Ministerie Ministeriet Universitatea Ministerul Banca Partidul"
)
DIRECT = words_of(
    "Ministerstwo Ministerstwa Ministerstwie Uniwersytet Uniwersytetu Uniwersytecie Sąd Sądu Sądzie Urząd Urzędu"
    " Urzędzie Instytut Instytutu Instytucie Komisja Komisji Komisję Izba Izby Centrum Fundacja Fundacji"
    " Stowarzyszenie Związek Związku Akademia Akademii Politechnika Politechniki Prokuratura Prokuratury Komenda"
    " Komendy Agencja Agencji Szpital Szpitala Tribunal Corte Instituto Consejo Conselho Universidad Universidade"
    " Università Istituto Banco Banca Partido Partito Federación Confederación Comisión Agencia Agência Fundación"
    " Policía Guardia Polizia Ministerstvo Ministerstva Univerzita Univerzity Landgericht Amtsgericht"
    " Oberlandesgericht Verwaltungsgericht Staatsanwaltschaft Universität Universitätsklinikum Klinikum"
    " Hochschule Universiteit Rechtbank Gemeente"
)
"""After these an organisation's name goes on with capitalised words; in German and Dutch with a place."""
CLUBS = words_of(
    "FC SC SV SSV TSV TSG VfB VfL VfR CF AFC Dynamo Dinamo Lokomotiv Lokomotiw Spartak Olympique Deportivo"
    " Maccabi Hapoel AC AS IFK NK FK OGC RCD CSKA ZSKA SSC SpVgg MSV Atlético Borussia Eintracht Arminia Fortuna"
    " Alemannia Sporting Stade Inter Hellas"
)
"""What stands before the name or the place of a club."""
OF_CLUBS = words_of("United Rovers Wanderers Albion Athletic FC CF AFC SC Hotspur Calcio Kickers")
"""What stands behind the place of a club."""
OF_TOWNS = words_of("City Town County")
"""The same, where the language has its own words for these."""
OF_PLACES = words_of(
    "Airport Stadium River Island Islands County Province Peninsula Bridge Valley Mountains Bay Beach Canal"
    " Strait Highlands Archipelago Prefecture Oblast"
)
"""What makes a place of the capitalised words before it."""
OF_ORGANISATIONS = words_of(
    "organisation organization organización organização organizzazione organizacja union unión união unione"
    " council committee commission commissione comisión comissão agency agence agencia agência agenzia"
    " association asociación associação associazione federation federación fédération federação institute"
    " institut instituto istituto instytut centre center centro ministry ministère ministerio ministério"
    " ministero ministerium ministerstwo university universidad université università universität bank banco"
    " banque party partido parti partito partei front frente movement mouvement movimiento authority autorité"
    " autoridad foundation fondation fundación stiftung service office bureau board court tribunal corporation"
    " company group alliance league club society société sociedad verband bund bundesamt amt gesellschaft"
    " bundesverband gewerkschaft syndicat sindicato confederation confédération confederación conselho consejo"
    " conseil comité forces army force guard department administration academy laboratory observatory raad"
    " komisja urząd związek partia stowarzyszenie bond ministerie partij birliği kurumu partisi bakanlığı derneği"
    " vakfı bankası network congress conference community communauté comunidad assembly trust fund fonds"
    " initiative consortium coalition bundesanstalt landesamt behörde polizei police survey registry exchange"
    " operator"
)
ROLES = words_of(
    "president minister chancellor senator governor mayor secretary spokesman spokeswoman spokesperson coach"
    " manager striker midfielder defender goalkeeper captain winger forward actor actress singer director author"
    " novelist journalist analyst economist professor lawyer attorney founder co-founder chairman chairwoman"
    " judge king queen prince princess pope teammate quarterback rapper filmmaker architect historian biologist"
    " physicist ceo executive congressman congresswoman lawmaker politician activist commissioner prosecutor"
    " musician guitarist presidente presidenta ministro ministra canciller gobernador gobernadora alcalde"
    " alcaldesa senador senadora diputado diputada juez jueza rey reina príncipe princesa papa portavoz"
    " entrenador técnico delantero centrocampista portero capitán actriz cantante directora escritor escritora"
    " periodista profesor profesora abogado abogada empresario tenista piloto exministro expresidente exministra"
    " président présidente ministre chancelier gouverneur maire sénateur sénatrice député députée juge roi reine"
    " princesse pape général porte-parole entraîneur sélectionneur attaquant défenseur gardien capitaine acteur"
    " actrice chanteur chanteuse réalisateur réalisatrice écrivain journaliste professeur avocat avocate premier"
    " sindaco senatore deputato giudice regina principe principessa allenatore attaccante portiere attore attrice"
    " regista scrittore scrittrice giornalista professore avvocato pilota governatore governador prefeito"
    " deputado juiz rei rainha treinador atacante goleiro ator atriz cantor cantora diretor escritora jornalista"
    " professora empresário vereador staatssecretaris burgemeester koning koningin prins prinses paus"
    " woordvoerder trainer spits keeper zanger zangeres regisseur schrijver schrijfster hoogleraar advocaat"
    " lijsttrekker fractievoorzitter statsminister statsministern kung kungen drottning statsråd finansminister"
    " utrikesminister förbundskapten prezydent prezydenta premiera minister ministra prezes poseł posłanka sędzia"
    " król papież generał rzecznik rzeczniczka trener napastnik bramkarz aktor aktorka piosenkarka reżyser pisarz"
    " dziennikarz profesor szef prezident premiér ministr ministryně poslanec poslankyně trenér herec herečka"
    " režisér президент президента президенту президентом премьер премьер-министр премьера премьер-министра"
    " министр министра министром канцлер канцлера глава главы губернатор губернатора мэр мэра депутат депутата"
    " сенатор судья король генерал тренер тренера нападающий вратарь защитник полузащитник актер актёр актера"
    " актриса актрисы певец певица певицы режиссер режиссёр режиссера писатель журналист журналиста профессор"
    " адвокат пресс-секретарь спикер директор директора бизнесмен бизнесмена блогер блогера политолог экономист"
    " экс-президент вице-президент президентом президентові прем'єр прем'єр-міністр міністр голова міський речник"
    " тренер очільник"
)
"""What people are called before their names, in small letters."""
GERMAN_ROLES = (
    "präsident", "präsidentin", "minister", "ministerin", "kanzler", "kanzlerin", "chef", "chefin", "bürgermeister",
    "bürgermeisterin", "sprecher", "sprecherin", "trainer", "trainerin", "coach", "stürmer", "torwart", "könig",
    "königin", "prinz", "prinzessin", "papst", "richter", "sänger", "sängerin", "schauspieler", "schauspielerin",
    "regisseur", "regisseurin", "autor", "autorin", "abgeordnete", "abgeordneter", "politiker", "politikerin",
    "ökonom", "ökonomin", "forscher", "forscherin", "vorsitzende", "vorsitzender", "anwalt", "anwältin", "profi",
)  # fmt: skip
"""How German words for such people end; they have a capital letter."""
INFLECTING = words_of("ru uk bg sr mk pl cs sk hr sl bs")
"""Languages where one word behind a role may be a place in the genitive: only two words are a person."""
GENITIVE = words_of("de nl sv da no nb")
"""Languages that put an `s` behind names."""
VERBS = words_of(
    "says said announces announced unveils unveiled launches launched reports reported sues sued wins faces cuts"
    " confirms confirmed plans acquires acquired buys bought releases released introduces introduced reveals"
    " posts warns raises delays recalls hires invests beats settles agrees expects slashes ceo shares stock"
    " employees workers executives cfo inc will's"
)
"""What stands behind a company's name at the beginning of a sentence."""
